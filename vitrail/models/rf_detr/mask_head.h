// SPDX-License-Identifier: Apache-2.0
#pragma once
// The masks of RF-DETR's queries: products of what blocks of convolutions make of the map and MLPs of the queries.
#include "vitrail/models/rf_detr/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"

namespace vitrail::models {

// x + act(pwconv1(norm(dwconv(x)))), where dwconv is a 3×3 convolution of each channel by itself.  x [B, h, w, D].
class RfDetrMaskBlock : public nn::Module {
 public:
  RfDetrMaskBlock(int64_t dim, kernels::Activation act, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "DepthwiseConvBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  kernels::Activation act_;
  Tensor weight_, bias_;  // parameters of dwconv
  nn::LayerNorm norm_;
  nn::Linear pwconv1_;
};

// x + layers.2(act(layers.0(norm_in(x)))).  x [B, Q, D].
class RfDetrQueryBlock : public nn::Module {
 public:
  RfDetrQueryBlock(int64_t dim, const RfDetrMaskConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MLPBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  kernels::Activation act_;
  nn::LayerNorm norm_in_;
  nn::Linear fc1_, fc2_;
};

class RfDetrMaskHead : public nn::Module {
 public:
  RfDetrMaskHead(int64_t dim, const RfDetrMaskConfig& config, const ParamSource& params);
  // map [B, h, w, D], queries [B, Q, D] → logits [B, Q, side, side]
  Tensor forward(const Tensor& map, const Tensor& queries, int64_t side) const;
  std::string type() const override { return "SegmentationHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<RfDetrMaskBlock> blocks_;
  nn::Conv2d spatial_features_proj_;
  RfDetrQueryBlock query_features_block_;
  nn::Linear query_features_proj_;
  Tensor bias_;  // [1], the same for all masks
};

}  // namespace vitrail::models
