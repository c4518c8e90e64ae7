// SPDX-License-Identifier: Apache-2.0
#pragma once
// Root mean square normalisation over rows (Zhang & Sennrich 2019, eq. 4): y = γ · x / √(mean(x²) + ε).
#include <cstdint>

namespace vitrail::kernels {

// x [rows, cols] with row stride ldx → y [rows, cols] with row stride ldy, in elements.  gamma [cols] may be null (1).
// y may be x.
void rms_norm(const float* x, int64_t ldx, const float* gamma, float eps, float* y, int64_t ldy, int64_t rows,
              int64_t cols);

// The gradients of rms_norm over contiguous rows [rows, cols].  With x̂ = x / √(mean(x²) + ε) and g = grad · γ:
//   grad_x = (g − x̂ · mean(g · x̂)) / √(mean(x²) + ε),  grad_gamma = Σ_r grad · x̂.
// grad_gamma [cols] may be null.  Rows are summed in fixed chunks, so that the result does not depend on the number of
// threads.
void rms_norm_backward(const float* x, const float* gamma, float eps, const float* grad, int64_t rows, int64_t cols,
                       float* grad_x, float* grad_gamma);

}  // namespace vitrail::kernels
