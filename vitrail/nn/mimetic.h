// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mimetic initialisation (Trockman & Kolter 2023, "Mimetic initialization of self-attention layers"): attention weights
// whose products have the structure that is observed in trained transformers.
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// α (noise) and β (identity) of the products; the defaults are the paper's for small images.
struct MimeticOptions {
  double qk_noise = 0.7, qk_identity = 0.7;
  double vo_noise = 0.4, vo_identity = 0.4;
};

// Overwrites the weights of an attention layer of C channels and H heads of width d:
//   W_q W_kᵀ ≈ α Z + β I  for each head, in its best approximation of rank d;
//   W_v W_o  ≈ α Z − β I  for all heads together, of rank H·d (exact if H·d = C).
// Z [C, C] is uniform with variance 1/C, drawn with `key`.  A product is split by its singular value decomposition
// into the factors U √S and √S Vᵀ.
//
// As in nn::Attention, qkv_weight [3·H·d, C] has the rows W_qᵀ, W_kᵀ, W_vᵀ, and proj_weight [C, H·d] is W_oᵀ; f32.
// Biases are not changed; the paper has zeros.  Throws Error for shapes that do not match, and for H·d > C.
void mimetic_attention(const MimeticOptions& options, int64_t heads, uint64_t key, const Tensor& qkv_weight,
                       const Tensor& proj_weight);

}  // namespace vitrail::nn
