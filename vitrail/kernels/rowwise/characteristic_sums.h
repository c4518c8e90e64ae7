// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of cosines and sines of the columns of a matrix: the empirical characteristic functions of the columns at
// multiples of a step (Epps & Pulley 1983), and their gradients.
#include <cstdint>

namespace vitrail::kernels {

constexpr int64_t kHarmonics = 16;

// sums[v, k, 0, c] = Σ_r cos((k + 1) · step · u[v, r, c]), and sums[v, k, 1, c] the same with sin.
// u [views, rows, cols] → sums [views, kHarmonics, 2, cols], both contiguous.  One cosine and sine per element is
// computed, those of its multiples by rotation.  Rows are summed in order: the result does not depend on the number of
// threads.
void characteristic_sums(const float* u, int64_t views, int64_t rows, int64_t cols, float step, float* sums);

// The gradient of u, given that of the sums:
//   grad_u = Σ_k (k + 1) · step · (grad_sums[k, 1] cos((k + 1) · step · u) − grad_sums[k, 0] sin((k + 1) · step · u)).
void characteristic_sums_backward(const float* u, int64_t views, int64_t rows, int64_t cols, float step,
                                  const float* grad_sums, float* grad_u);

}  // namespace vitrail::kernels
