// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/nn/module.h"

namespace vitrail::models {

// A network's own Vision Transformer, where models::VisionTransformer does not do: its blocks are nn::Block with timm's
// names, as the configuration says.
class VitBackbone : public nn::Module {
 public:
  using Module::Module;
  virtual const VisionTransformerConfig& config() const = 0;
  std::string type() const override { return "VisionTransformer"; }
};

}  // namespace vitrail::models
