// SPDX-License-Identifier: Apache-2.0
#pragma once
// Layer normalisation over rows (Ba, Kiros & Hinton 2016, eq. 4): y = γ · (x − mean) / √(variance + ε) + β with the
// biased variance, as torch.nn.LayerNorm.
#include <cstdint>

namespace vitrail::kernels {

// x [rows, cols] with row stride ldx → y [rows, cols] with row stride ldy, in elements.  gamma and beta [cols] may be
// null (1 and 0).  y may be x.
void layer_norm(const float* x, int64_t ldx, const float* gamma, const float* beta, float eps, float* y, int64_t ldy,
                int64_t rows, int64_t cols);

// The gradients of layer_norm over contiguous rows [rows, cols].  With x̂ = (x − mean) / σ and g = grad · γ:
//   grad_x = (g − mean(g) − x̂ · mean(g · x̂)) / σ,  grad_gamma = Σ_r grad · x̂,  grad_beta = Σ_r grad.
// grad_gamma and grad_beta [cols] may be null.  Rows are summed in fixed chunks, so that the result does not depend on
// the number of threads.
void layer_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                         float* grad_x, float* grad_gamma, float* grad_beta);

// out = x + scale · y, then norm = layer_norm(out) while a row is in the cache.  scale [cols] (LayerScale) may be null
// (1).  x, y, out and norm are contiguous [rows, cols]; out may be x or y.  norm may be null: only the sum.
void residual_layer_norm(const float* x, const float* y, const float* scale, const float* gamma, const float* beta,
                         float eps, float* out, float* norm, int64_t rows, int64_t cols);

}  // namespace vitrail::kernels
