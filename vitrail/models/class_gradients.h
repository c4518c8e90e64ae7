// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gradients of a class's logit with respect to the pixels and to any value of the forward pass: what saliency maps,
// integrated gradients, Grad-CAM and relevance propagation are computed from.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {

struct ClassGradientOptions {
  std::optional<int64_t> target = {};  // index of the class; default: of each image, the one with the highest logit
  // "images", the model's input, or names of a trace (nn/trace.h): "embedded", the tokens that enter the first block;
  // "blocks.3", those after a block; "blocks.3.attn.weights".
  std::vector<std::string> values{"images"};
  // Gets every value of the forward pass as a trace does, such as attention weights that go with a gradient.
  nn::TraceCallback on_value = {};
};

// The model's input [B, C, H, W] → the gradient of logits[b, target] with respect to each value, of the value's shape.
// `images` alone takes less memory, because its forward pass is fused.  The model is in eval mode, with its weights as
// build_model() gives them; nothing of it changes.  Throws Error for a target that is no class, and for the name of no
// value.
std::vector<Tensor> class_gradients(const VisionTransformer& model, const Tensor& images,
                                    const ClassGradientOptions& options = {});

// The gradients of logits[b, target], as above, with respect to "images", to every value of a trace, in its order, and
// to every parameter, under their names.  They take as much memory as the values.  The model's parameters are left
// without gradients.
std::vector<nn::NamedTensor> all_class_gradients(VisionTransformer& model, const Tensor& images,
                                                 std::optional<int64_t> target = std::nullopt);

}  // namespace vitrail::models
