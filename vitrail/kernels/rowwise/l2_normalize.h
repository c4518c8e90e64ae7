// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

constexpr double kMinNorm = 1e-12;  // that of torch.nn.functional.normalize

// Scales a vector to unit L2 norm.  A norm below kMinNorm counts as kMinNorm.  Returns the norm that it had.
double normalize_row(float* row, int64_t width);
double normalize_row(double* row, int64_t width);
// The same for each of `count` rows in a contiguous array, on several threads.
void normalize_rows(float* rows, int64_t count, int64_t width);

}  // namespace vitrail::kernels
