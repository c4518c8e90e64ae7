// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// Softmax of each contiguous row, in place or not (y may be x).  A row of all −∞ gives zeros, never NaN.
void softmax(const float* x, float* y, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
