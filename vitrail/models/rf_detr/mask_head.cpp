// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/rf_detr/mask_head.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/convolution.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/resize.h"

namespace vitrail::models {
namespace {

constexpr double kMaskBlockNormEps = 1e-6, kQueryBlockNormEps = 1e-5;

}  // namespace

RfDetrMaskBlock::RfDetrMaskBlock(int64_t dim, kernels::Activation act, const ParamSource& params)
    : Module(params.path()),
      act_(act),
      weight_(params.get("dwconv.weight", {dim, 1, 3, 3}, nn::init::torch_default(9))),
      bias_(params.get("dwconv.bias", {dim}, nn::init::torch_default(9))),
      norm_(dim, kMaskBlockNormEps, params.child("norm")),
      pwconv1_(dim, dim, true, params.child("pwconv1")) {}

Tensor RfDetrMaskBlock::forward(const Tensor& x) const {
  const Tensor y = ops::depthwise_conv_3x3(x, weight_.view({weight_.size(0), 3, 3}), bias_);
  return nn::traced(*this, ops::add(x, pwconv1_.forward(norm_.forward(y), act_)));
}

void RfDetrMaskBlock::visit(nn::Visitor& visitor) {
  visitor.parameter("dwconv.weight", weight_);
  visitor.parameter("dwconv.bias", bias_);
  visitor.child("norm", static_cast<nn::Module&>(norm_));
  visitor.child("pwconv1", static_cast<nn::Module&>(pwconv1_));
}

RfDetrQueryBlock::RfDetrQueryBlock(int64_t dim, const RfDetrMaskConfig& config, const ParamSource& params)
    : Module(params.path()),
      act_(config.act),
      norm_in_(dim, kQueryBlockNormEps, params.child("norm_in")),
      fc1_(dim, config.mlp_hidden, true, params.child("layers").child(0)),
      fc2_(config.mlp_hidden, dim, true, params.child("layers").child(2)) {}

Tensor RfDetrQueryBlock::forward(const Tensor& x) const {
  return nn::traced(*this, ops::add(x, fc2_.forward(fc1_.forward(norm_in_.forward(x), act_))));
}

void RfDetrQueryBlock::visit(nn::Visitor& visitor) {
  visitor.child("norm_in", static_cast<nn::Module&>(norm_in_));
  visitor.child("layers.0", static_cast<nn::Module&>(fc1_));
  visitor.child("layers.2", static_cast<nn::Module&>(fc2_));
}

RfDetrMaskHead::RfDetrMaskHead(int64_t dim, const RfDetrMaskConfig& config, const ParamSource& params)
    : Module(params.path()),
      blocks_(params.child("blocks").path()),
      spatial_features_proj_({.in_chans = dim, .out_chans = dim}, params.child("spatial_features_proj")),
      query_features_block_(dim, config, params.child("query_features_block")),
      query_features_proj_(dim, dim, true, params.child("query_features_proj")),
      bias_(params.get("bias", {1}, nn::init::zeros())) {
  for (int64_t i = 0; i < config.blocks; ++i) blocks_.emplace_back(dim, config.act, params.child("blocks").child(i));
}

Tensor RfDetrMaskHead::forward(const Tensor& map, const Tensor& queries, int64_t side) const {
  Tensor x = ops::resize_map(map, side, side);
  for (const RfDetrMaskBlock& block : blocks_) x = block.forward(x);
  const Tensor pixels = spatial_features_proj_.forward(x).view({x.size(0), side * side, x.size(3)});
  const Tensor weights = query_features_proj_.forward(query_features_block_.forward(queries));
  const Tensor masks = ops::add(ops::matmul(weights, pixels.transpose(1, 2)), bias_);
  return nn::traced(*this, masks.view({x.size(0), queries.size(1), side, side}));
}

void RfDetrMaskHead::visit(nn::Visitor& visitor) {
  visitor.child("blocks", static_cast<nn::Module&>(blocks_));
  visitor.child("spatial_features_proj", static_cast<nn::Module&>(spatial_features_proj_));
  visitor.child("query_features_block", static_cast<nn::Module&>(query_features_block_));
  visitor.child("query_features_proj", static_cast<nn::Module&>(query_features_proj_));
  visitor.parameter("bias", bias_);
}

}  // namespace vitrail::models
