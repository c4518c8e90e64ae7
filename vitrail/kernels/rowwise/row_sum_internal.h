// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of rows [rows, cols] with row stride ldx, in the order of the rows, on the calling thread.
#include <cstdint>

namespace vitrail::kernels {

// out [cols] = factor · Σ_r x[r].
void sum_of_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float factor, float* out);
// out [cols] += Σ_r x[r].
void add_rows(const float* x, int64_t ldx, int64_t rows, int64_t cols, float* out);

}  // namespace vitrail::kernels
