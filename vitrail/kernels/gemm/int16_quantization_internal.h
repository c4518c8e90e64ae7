// SPDX-License-Identifier: Apache-2.0
#pragma once
// Symmetric per-row quantisation to int16, x ≈ scale · q, such that no int32 accumulator can overflow.
#include <cmath>
#include <cstdint>

namespace vitrail::kernels {

// The L2 norm of x / scale for a row of n values: scale = ‖x‖₂ / max_int16_norm(n).  Rounding changes each value by at
// most ½, so ‖q‖₂ ≤ max_int16_norm(n) + ½ √n = 2¹⁵ − 1.  Then each value fits int16, and by Cauchy–Schwarz each partial
// sum of q · r fits int32: |Σ qᵢ rᵢ| ≤ ‖q‖₂ ‖r‖₂ < 2³⁰.
inline float max_int16_norm(int64_t n) { return static_cast<float>(32767 - 0.5 * std::sqrt(static_cast<double>(n))); }

}  // namespace vitrail::kernels
