// SPDX-License-Identifier: Apache-2.0
#pragma once
// Smoothing factors of one linear layer (Xiao et al. 2023, "SmoothQuant"), refined by gradient descent.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::quantize {

// Tokens of a layer's input, sampled from the calibration images: [n, in] each, row-major.
struct InputSample {
  std::vector<float> activations;
  std::vector<float> centered;  // the same tokens of centered_tokens(): rounding errors of the weight multiply these
};

// Factors s [in]: the layer computes (x / s) (W · s)ᵀ, which equals x Wᵀ (eq. 3 of the paper).  The search starts from
// s = √(max |x| / max |W|) per channel (eq. 4 with α = ½).  Adam (Kingma & Ba 2015, algorithm 1) then minimises, over
// log s, the expected squared error of the int8 GEMM.  A uniform rounding error has the variance Δ²/12 at a scale Δ, so
// with d the centred tokens the error is proportional to
//
//   Σ_t Δ_t² · Σ_rc (W_rc s_c)²  +  Σ_r Δ_r² · Σ_tc (d_tc / s_c)²
//   Δ_t = (max_c x_tc / s_c − min_c x_tc / s_c) / 255   of token t: asymmetric, the range includes 0
//   Δ_r = max_c |W_rc s_c| / 127                        of weight row r: symmetric
//
// weight: f32 [out, in].  A channel whose activations or weights are all 0 has the factor 1.
std::vector<float> smoothing_factors(const InputSample& sample, const Tensor& weight);

}  // namespace vitrail::quantize
