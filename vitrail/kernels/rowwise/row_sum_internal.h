// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace vitrail::kernels {

// to [cols] = factor · the sum of x's rows [rows, cols], row stride ldx, in their order; on the calling thread.
void sum_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, float* to);
// to [cols] += that sum.
void add_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float* to);

}  // namespace vitrail::kernels
