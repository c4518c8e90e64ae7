// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// Scales a vector to unit L2 norm.  A norm below 1e-12 counts as 1e-12.  Returns the norm that it had.
double normalize_row(float* row, int64_t width);
// The same for each of `count` rows in a contiguous array, on several threads.
void normalize_rows(float* rows, int64_t count, int64_t width);

}  // namespace vitrail::kernels
