// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums and products along contiguous memory: what is left between two larger operations.
#include <cstdint>

namespace vitrail::kernels {

// out = a + b; out may be a or b.
void add(const float* a, const float* b, float* out, int64_t n);
// out = a · b; out may be a or b.
void multiply(const float* a, const float* b, float* out, int64_t n);

// out[c] = Σ_r x[r, c] over contiguous rows [rows, cols], or Σ_r x[r, c] · y[r, c] when y is not null.  Rows are summed
// in fixed chunks, so the thread count does not change the result.
void sum_rows(const float* x, const float* y, int64_t rows, int64_t cols, float* out);

}  // namespace vitrail::kernels
