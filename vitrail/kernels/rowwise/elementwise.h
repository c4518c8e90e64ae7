// SPDX-License-Identifier: Apache-2.0
#pragma once
// Elementwise operations and sums on contiguous memory.
#include <cstdint>

namespace vitrail::kernels {

// out = a + b.  out may be a or b.
void add(const float* a, const float* b, float* out, int64_t n);
// out = a · b.  out may be a or b.
void multiply(const float* a, const float* b, float* out, int64_t n);

// out[c] = Σ_r x[r, c] over contiguous rows [rows, cols], or Σ_r x[r, c] · y[r, c] unless y is null.  Rows are summed
// in fixed chunks, so that the result does not depend on the number of threads.
void sum_rows(const float* x, const float* y, int64_t rows, int64_t cols, float* out);

}  // namespace vitrail::kernels
