// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernel of RMSNorm: a scalar reference, and a version for each instruction set.
#include <cmath>
#include <cstdint>

namespace extending {
namespace scalar {

// One row of RMSNorm (rms_norm.h): x, y [cols]; gamma [cols] or null (1).
template <class T>
void rms_norm_row(const T* x, const T* gamma, T eps, T* y, int64_t cols) {
  T squares = 0;
  for (int64_t c = 0; c < cols; ++c) squares += x[c] * x[c];
  const T inverse = 1 / std::sqrt(squares / static_cast<T>(cols) + eps);
  for (int64_t c = 0; c < cols; ++c) y[c] = x[c] * inverse * (gamma ? gamma[c] : 1);
}

}  // namespace scalar

// Contiguous rows [rows, cols], in parallel, with the active instruction set.
void rms_norm_rows(const float* x, const float* gamma, float eps, float* y, int64_t rows, int64_t cols);

}  // namespace extending
