// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mimetic initialisation of self-attention (Trockman & Kolter 2023, "Mimetic initialization of self-attention layers",
// arXiv 2305.09828): weights that begin where those of trained transformers are found.
#include <cstdint>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// α ("noise") and β ("identity") of the products; the paper's values for small pictures.
struct MimeticOptions {
  double qk_noise = 0.7, qk_identity = 0.7;
  double vo_noise = 0.4, vo_identity = 0.4;
};

// Overwrites the weights of an attention layer of C channels and `heads` heads of width d:
//   per head  W_q W_kᵀ ≈ α Z + β I, its best approximation of rank d;
//   all heads W_v W_o  ≈ α Z − β I, of rank heads · d (exact where that is C).
// Z [C, C] is uniform with variance 1/C, drawn by `key`.  Each product is shared out evenly: U √S and √S Vᵀ of the
// singular value decomposition.  In the layout of nn::Attention, qkv_weight [3 · heads · d, C] holds W_qᵀ, W_kᵀ and
// W_vᵀ in its rows, proj_weight [C, heads · d] is W_oᵀ; f32 both.  Biases are the caller's (the paper has none: zeros).
// Throws Error when the shapes do not belong together or heads · d is more than C.
void mimetic_attention(const MimeticOptions& options, int64_t heads, uint64_t key, const Tensor& qkv_weight,
                       const Tensor& proj_weight);

}  // namespace vitrail::nn
