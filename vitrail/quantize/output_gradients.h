// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a model's answers depend on what its linear layers give.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// By layer ("blocks.0.attn.qkv") the sum of g gᵀ [out, out] over pictures and random directions, g [out, in] the
// gradient of one picture's answers (logits; without a head the pooled features) in one direction by the layer's
// weight.  An error e of the weight moves the answers by Σ g ⊙ e: an output's row in the sum tells how much its errors
// move them, and with which others' (Tseng et al. 2025, "YAQA": one side of their Kronecker factors).
// images: batches [B, C, H, W].  Some 512 passes as in training, or one for each picture where there are more.
// Afterwards the parameters need no gradients, and none is a mapped file's: they may be written to.
std::map<std::string, Tensor> output_gradients(models::VisionTransformer& model, const std::vector<Tensor>& images,
                                               const std::vector<std::string>& layers);

}  // namespace vitrail::quantize
