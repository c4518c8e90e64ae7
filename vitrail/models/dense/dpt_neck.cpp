// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dense/dpt_neck.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/folded_batch_norm.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layout.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/resize.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::models {
namespace {

using kernels::Activation;
using ops::Corners;

std::array<int64_t, 2> size_of(const Tensor& map) { return {map.size(1), map.size(2)}; }

Tensor resized(const Tensor& map, std::array<int64_t, 2> size, Corners corners) {
  return size_of(map) == size ? map : ops::resize_map(map, size[0], size[1], corners);
}

nn::Conv2d residual_convolution(const DptNeckConfig& config, const ParamSource& params, int64_t index) {
  const ParamSource convolution = params.child(str("convolution", index));
  const nn::Conv2dConfig shape{.in_chans = config.fusion_dim, .out_chans = config.fusion_dim, .kernel = 3};
  if (config.batch_norm) {
    nn::FoldedBatchNorm folded(convolution, params.child(str("batch_norm", index)), config.residual_bias);
    return {shape, ParamSource(folded, convolution.path())};
  }
  nn::Conv2dConfig plain = shape;
  plain.bias = config.residual_bias;
  return {plain, convolution};
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

DptResidualLayer::DptResidualLayer(const DptNeckConfig& config, const ParamSource& params)
    : Module(params.path()),
      convolution1_(residual_convolution(config, params, 1)),
      convolution2_(residual_convolution(config, params, 2)) {}

Tensor DptResidualLayer::forward(const Tensor& x) const {
  const Tensor hidden = convolution1_.forward(ops::activation(x, Activation::relu), Activation::relu);
  return nn::traced(*this, ops::residual_add(x, convolution2_.forward(hidden)));
}

void DptResidualLayer::visit(nn::Visitor& visitor) {
  visitor.child("convolution1", static_cast<nn::Module&>(convolution1_));
  visitor.child("convolution2", static_cast<nn::Module&>(convolution2_));
}

DptFusionLayer::DptFusionLayer(const DptNeckConfig& config, bool first, const ParamSource& params)
    : Module(params.path()),
      projection_({.in_chans = config.fusion_dim, .out_chans = config.fusion_dim}, params.child("projection")),
      residual_layer2_(config, params.child("residual_layer2")) {
  if (!first) residual_layer1_.emplace(config, params.child("residual_layer1"));
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
      config_(config),
      readout_projects_(params.child("reassemble_stage").child("readout_projects").path()),
      reassemble_(params.child("reassemble_stage").child("layers").path()),
      convs_(params.child("convs").path()),
      fusion_(params.child("fusion_stage").child("layers").path()) {
  const ParamSource reassemble = params.child("reassemble_stage").child("layers");
  const ParamSource readouts = params.child("reassemble_stage").child("readout_projects");
  const ParamSource fusion = params.child("fusion_stage").child("layers");
  for (size_t i = 0; i < config.hidden_dims.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const int64_t hidden = config.hidden_dims[i];
    reassemble_.emplace_back(config.dim, hidden, config.factors[i], reassemble.child(index));
    convs_.emplace_back(
        nn::Conv2dConfig{.in_chans = hidden, .out_chans = config.fusion_dim, .kernel = 3, .bias = false},
        params.child("convs").child(index));
    fusion_.emplace_back(config, i == 0, fusion.child(index));
    if (config.readout == DptReadout::project)
      readout_projects_.emplace_back(2 * config.dim, config.dim, true, readouts.child(index));
  }
}

Tensor DptNeck::patches_of(const Tensor& tokens, int64_t count, size_t index) const {
  const Tensor patches = tokens.narrow(1, tokens.size(1) - count, count), class_token = tokens.narrow(1, 0, 1);
  if (config_.readout == DptReadout::ignore) return ops::contiguous(patches);
  if (config_.readout == DptReadout::add) return ops::add(patches, class_token);
  const Tensor both = ops::cat({patches, class_token.expand(patches.shape())}, 2);
  return ops::activation(readout_projects_[index].forward(both), config_.readout_act);
}

Tensor DptNeck::forward(const std::vector<Tensor>& tokens, int64_t rows, int64_t columns) const {
  std::vector<Tensor> features;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const Tensor map =
        patches_of(tokens[i], rows * columns, i).view({tokens[i].size(0), rows, columns, tokens[i].size(2)});
    features.push_back(convs_[i].forward(reassemble_[i].forward(map)));
  }
  Tensor fused = features.back();
  for (size_t i = 0; i < features.size(); ++i) {  // from the coarsest map to the finest
    const size_t at = features.size() - 1 - i;
    const std::array<int64_t, 2> own = size_of(fused), size = at > 0 && !config_.doubles
                                                                  ? size_of(features[at - 1])
                                                                  : std::array{2 * own[0], 2 * own[1]};
    fused = fusion_[i].forward(fused, features[at], size);
  }
  return nn::traced(*this, fused);
}

void DptNeck::visit(nn::Visitor& visitor) {
  if (readout_projects_.size() > 0)
    visitor.child("reassemble_stage.readout_projects", static_cast<nn::Module&>(readout_projects_));
  visitor.child("reassemble_stage.layers", static_cast<nn::Module&>(reassemble_));
  visitor.child("convs", static_cast<nn::Module&>(convs_));
  visitor.child("fusion_stage.layers", static_cast<nn::Module&>(fusion_));
}

}  // namespace vitrail::models
