// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a class's logit with respect to the pixels and to any value of the forward pass: what saliency maps,
// integrated gradients, Grad-CAM and relevance propagation are computed from.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

struct ClassGradientOptions {
  std::optional<int64_t> target = {};  // index of the class; default: of each image, the one with the highest logit
  // "images", the model's input, or names of a trace (nn/trace.h): "embedded", the tokens that enter the first block;
  // "blocks.3", those after a block; "blocks.3.attn.weights".
  std::vector<std::string> values{"images"};
};

// The model's input [B, C, H, W] → the gradient of logits[b, target] with respect to each value, of the value's shape.
// `images` alone takes less memory, because its forward pass is fused.  The model is in eval mode, with its weights as
// build_model() gives them; nothing of it changes.  Throws Error for a target that is no class, and for the name of no
// value.
std::vector<Tensor> class_gradients(const VisionTransformer& model, const Tensor& images,
                                    const ClassGradientOptions& options = {});

}  // namespace vitrail::models
