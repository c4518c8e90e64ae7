// SPDX-License-Identifier: Apache-2.0
#pragma once
// UPerNet (Xiao et al. 2018, "Unified Perceptual Parsing for Scene Understanding") on four maps of a Vision
// Transformer, as BEiT has it.  Maps are [B, h, w, C].  Parameters have the names of transformers' files.
#include <optional>

#include "vitrail/models/semantic/heads.h"

namespace vitrail::models {

// A pyramid of the four maps: enlarged to four times and twice their size, as they are, and halved.
class FeaturePyramid : public nn::Module {
 public:
  FeaturePyramid(int64_t dim, const ParamSource& params);
  std::vector<Tensor> forward(const std::vector<Tensor>& maps) const;
  std::string type() const override { return "FeaturePyramid"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ConvTranspose2d first_, second_, twice_;
};

class UperNetHead : public SemanticHeadModule {
 public:
  UperNetHead(const SemanticConfig& config, const ParamSource& params);
  Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const override;
  std::string type() const override { return "UperHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor pyramid_pooling(const Tensor& coarsest) const;

  std::vector<int64_t> scales_;
  FeaturePyramid pyramid_;
  nn::ModuleList<nn::Conv2d> psp_modules_;
  nn::Conv2d bottleneck_;
  nn::ModuleList<nn::Conv2d> lateral_convs_, fpn_convs_;
  nn::Conv2d fpn_bottleneck_, classifier_;
};

}  // namespace vitrail::models
