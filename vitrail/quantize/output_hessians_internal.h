// SPDX-License-Identifier: Apache-2.0
#pragma once
// The output side of a layer's Hessian (Tseng et al. 2025, "YAQA"): how errors of the layer's output channels change
// the model's output.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

// For each layer ("blocks.0.attn.qkv") G = Σ g gᵀ [out, out].  g [out, in] is the gradient, with respect to the layer's
// weight, of a random projection of one image's output onto a direction from N(0, I).  The output are the logits, or
// the pooled features of a model without a head.  A small error e of the weight changes that projection by Σ g ⊙ e, so
// the expectation over directions is the Fisher information for unit Gaussian noise on the output; G is its Kronecker
// factor of the output channels.
//
// images: batches [B, C, H, W].  Takes 512 directions, shared evenly by the images, and at least one for each image.
// Afterwards no parameter requires a gradient, and all parameters may be written to (none is a mapped file's).
std::map<std::string, Tensor> output_hessians(models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::vector<std::string>& layers);

}  // namespace vitrail::quantize
