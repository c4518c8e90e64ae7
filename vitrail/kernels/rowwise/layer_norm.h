// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layer normalisation over rows (Ba, Kiros & Hinton 2016): y = γ · (x − mean) / √(variance + ε) + β, biased variance.
#include <cstdint>

namespace vitrail::kernels {

// x [rows, cols] with row stride ldx → y with row stride ldy.  gamma, beta [cols], either may be null (1 and 0).
// y may be x.
void layer_norm(const float* x, int64_t ldx, const float* gamma, const float* beta, float eps, float* y, int64_t ldy,
                int64_t rows, int64_t cols);

// The gradients of layer_norm over contiguous rows.  With x̂ = (x − mean) / σ and g = grad · γ:
//   grad_x = (g − mean(g) − x̂ · mean(g · x̂)) / σ,  grad_gamma = Σ grad · x̂,  grad_beta = Σ grad over the rows.
// grad_gamma and grad_beta [cols] may be null.  The sums go over fixed chunks of rows: the thread count does not change
// them.
void layer_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta);

// out = x + scale · y, and norm = LayerNorm(out), in one pass over memory.  scale [cols] (LayerScale) may be null (1);
// all four are contiguous [rows, cols]; out may be x or y.  norm may be null: the addition alone.
void residual_layer_norm(const float* x, const float* y, const float* scale, const float* gamma, const float* beta,
                         float eps, float* out, float* norm, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
