// SPDX-License-Identifier: Apache-2.0
#pragma once
// DPT for semantic segmentation (Ranftl et al. 2021): its neck, a convolution and a classifier.
#include "vitrail/models/dense/dpt_neck.h"
#include "vitrail/models/semantic/heads.h"

namespace vitrail::models {

// conv1, whose weight contains a batch normalisation if config.batch_norm, relu and conv2, at twice the size of the
// fused map.
class DptSemanticHead : public SemanticHeadModule {
 public:
  DptSemanticHead(const SemanticConfig& config, const ParamSource& params);
  Tensor forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const override;
  std::string type() const override { return "DPTSemanticSegmentationHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  DptNeck neck_;
  nn::Conv2d conv1_, conv2_;
};

}  // namespace vitrail::models
