// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// y = softmax of each contiguous row of x [rows, cols].  y may be x.  A row of −∞ alone gives zeros; NaN anywhere in a
// row gives NaN in all of it.
void softmax(const float* x, float* y, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
