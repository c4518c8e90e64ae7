// SPDX-License-Identifier: Apache-2.0
#pragma once
// Heads of semantic segmenters: from feature maps of a Vision Transformer to the logits of classes.
#include <memory>
#include <vector>

#include "vitrail/models/semantic/config.h"
#include "vitrail/nn/convolution.h"

namespace vitrail::models {

class SemanticHeadModule : public nn::Module {
 public:
  using Module::Module;
  // Tokens after each of config.layers, prefix tokens first, [B, prefix + rows·columns, D] each → [B, h, w, classes].
  virtual Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const = 0;
};

// conv_seg on the features of all layers beside each other, which a batch normalisation `bn` may normalise first; the
// weight contains it.
class LinearSemanticHead : public SemanticHeadModule {
 public:
  LinearSemanticHead(const SemanticConfig& config, const ParamSource& params);
  Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const override;
  std::string type() const override { return "LinearHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d conv_seg_;
};

std::unique_ptr<SemanticHeadModule> make_semantic_head(const SemanticConfig& config, const ParamSource& params);

}  // namespace vitrail::models
