// SPDX-License-Identifier: Apache-2.0
#pragma once
// The scalar references of characteristic_sums.h: their specification, in any floating type.
#include <cmath>

#include "vitrail/kernels/rowwise/characteristic_sums.h"

namespace vitrail::kernels::scalar {

// sums[k, 0, c] += Σ_r cos((k + 1) · step · u[r, c]), and sums[k, 1, c] the same with sin.  Rows of u are `ldu` apart,
// those of sums [kHarmonics, 2, cols] `sums_stride`.
template <class T>
void characteristic_sums(const T* u, int64_t ldu, int64_t rows, int64_t cols, T step, T* sums, int64_t sums_stride) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t k = 0; k < kHarmonics; ++k) {
      for (int64_t c = 0; c < cols; ++c) {
        const T angle = T(k + 1) * step * u[r * ldu + c];
        sums[2 * k * sums_stride + c] += std::cos(angle);
        sums[(2 * k + 1) * sums_stride + c] += std::sin(angle);
      }
    }
  }
}

// The gradient of u, given that of the sums.
template <class T>
void characteristic_sums_backward(const T* u, int64_t ldu, int64_t rows, int64_t cols, T step, const T* grad_sums,
                                  int64_t sums_stride, T* grad_u) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      T gradient = 0;
      for (int64_t k = 0; k < kHarmonics; ++k) {
        const T multiple = T(k + 1) * step, angle = multiple * u[r * ldu + c];
        gradient += multiple * (grad_sums[(2 * k + 1) * sums_stride + c] * std::cos(angle) -
                                grad_sums[2 * k * sums_stride + c] * std::sin(angle));
      }
      grad_u[r * ldu + c] = gradient;
    }
  }
}

}  // namespace vitrail::kernels::scalar
