// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/depth/dpt_neck.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using ops::Corners;

std::array<int64_t, 2> size_of(const Tensor& map) { return {map.size(1), map.size(2)}; }

Tensor resized(const Tensor& map, std::array<int64_t, 2> size, Corners corners) {
  return size_of(map) == size ? map : ops::resize_map(map, size[0], size[1], corners);
}

}  // namespace

DptReassembleLayer::DptReassembleLayer(int64_t in, int64_t out, double factor, const ParamSource& params)
    : Module(params.path()), projection_({.in_chans = in, .out_chans = out}, params.child("projection")) {
  const ParamSource resize = params.child("resize");
  if (factor > 1) {
    enlarge_.emplace(nn::Conv2dConfig{.in_chans = out, .out_chans = out, .kernel = static_cast<int64_t>(factor)},
                     resize);
  } else if (factor < 1) {
    const auto stride = static_cast<int64_t>(1 / factor);
    reduce_.emplace(nn::Conv2dConfig{.in_chans = out, .out_chans = out, .kernel = 3, .stride = stride}, resize);
  }
}

Tensor DptReassembleLayer::forward(const Tensor& x) const {
  Tensor map = projection_.forward(x);
  if (enlarge_) map = enlarge_->forward(map);
  if (reduce_) map = reduce_->forward(map);
  return nn::traced(*this, map);
}

void DptReassembleLayer::visit(nn::Visitor& visitor) {
  visitor.child("projection", static_cast<nn::Module&>(projection_));
  if (enlarge_) visitor.child("resize", enlarge_);
  if (reduce_) visitor.child("resize", reduce_);
}

DptResidualLayer::DptResidualLayer(int64_t dim, const ParamSource& params)
    : Module(params.path()),
      convolution1_({.in_chans = dim, .out_chans = dim, .kernel = 3}, params.child("convolution1")),
      convolution2_({.in_chans = dim, .out_chans = dim, .kernel = 3}, params.child("convolution2")) {}

Tensor DptResidualLayer::forward(const Tensor& x) const {
  const Tensor hidden = convolution1_.forward(ops::activation(x, Activation::relu), Activation::relu);
  return nn::traced(*this, ops::residual_add(x, convolution2_.forward(hidden)));
}

void DptResidualLayer::visit(nn::Visitor& visitor) {
  visitor.child("convolution1", static_cast<nn::Module&>(convolution1_));
  visitor.child("convolution2", static_cast<nn::Module&>(convolution2_));
}

DptFusionLayer::DptFusionLayer(int64_t dim, bool first, const ParamSource& params)
    : Module(params.path()),
      projection_({.in_chans = dim, .out_chans = dim}, params.child("projection")),
      residual_layer2_(dim, params.child("residual_layer2")) {
  if (!first) residual_layer1_.emplace(dim, params.child("residual_layer1"));
}

// The projection commutes with the interpolation, whose weights have the sum 1, and is cheaper before it.
Tensor DptFusionLayer::forward(const Tensor& fused, const Tensor& map, std::array<int64_t, 2> size) const {
  Tensor x = fused;
  if (residual_layer1_)
    x = ops::residual_add(x, residual_layer1_->forward(resized(map, size_of(x), Corners::half_pixel)));
  const Tensor projected = projection_.forward(residual_layer2_.forward(x));
  return nn::traced(*this, resized(projected, size, Corners::aligned));
}

void DptFusionLayer::visit(nn::Visitor& visitor) {
  visitor.child("projection", static_cast<nn::Module&>(projection_));
  if (residual_layer1_) visitor.child("residual_layer1", residual_layer1_);
  visitor.child("residual_layer2", static_cast<nn::Module&>(residual_layer2_));
}

DptNeck::DptNeck(const DptNeckConfig& config, const ParamSource& params)
    : Module(params.path()),
      reassemble_(params.child("reassemble_stage").child("layers").path()),
      convs_(params.child("convs").path()),
      fusion_(params.child("fusion_stage").child("layers").path()) {
  const ParamSource reassemble = params.child("reassemble_stage").child("layers");
  const ParamSource fusion = params.child("fusion_stage").child("layers");
  for (size_t i = 0; i < config.hidden_dims.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const int64_t hidden = config.hidden_dims[i];
    reassemble_.emplace_back(config.dim, hidden, config.factors[i], reassemble.child(index));
    convs_.emplace_back(
        nn::Conv2dConfig{.in_chans = hidden, .out_chans = config.fusion_dim, .kernel = 3, .bias = false},
        params.child("convs").child(index));
    fusion_.emplace_back(config.fusion_dim, i == 0, fusion.child(index));
  }
}

Tensor DptNeck::forward(const std::vector<Tensor>& maps) const {
  std::vector<Tensor> features;
  for (size_t i = 0; i < maps.size(); ++i) features.push_back(convs_[i].forward(reassemble_[i].forward(maps[i])));
  Tensor fused = features.back();
  for (size_t i = 0; i < features.size(); ++i) {  // from the coarsest map to the finest
    const size_t at = features.size() - 1 - i;
    const std::array<int64_t, 2> own = size_of(fused),
                                 size = at > 0 ? size_of(features[at - 1]) : std::array{2 * own[0], 2 * own[1]};
    fused = fusion_[i].forward(fused, features[at], size);
  }
  return nn::traced(*this, fused);
}

void DptNeck::visit(nn::Visitor& visitor) {
  visitor.child("reassemble_stage.layers", static_cast<nn::Module&>(reassemble_));
  visitor.child("convs", static_cast<nn::Module&>(convs_));
  visitor.child("fusion_stage.layers", static_cast<nn::Module&>(fusion_));
}

}  // namespace vitrail::models
