// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/layer_norm.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/init.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {

LayerNorm::LayerNorm(int64_t features, double eps, const ParamSource& params, NormLayer kind)
    : Module(params.path()), kind_(kind), weight_(params.get("weight", {features}, init::ones())), eps_(eps) {
  if (kind == NormLayer::layer_norm) bias_ = params.get("bias", {features}, init::zeros());
}

Tensor LayerNorm::forward(const Tensor& x) const {
  const Tensor rows = ops::contiguous(x);
  return traced(*this, kind_ == NormLayer::rms_norm ? ops::rms_norm(rows, weight_, eps_)
                                                    : ops::layer_norm(rows, weight_, bias_, eps_));
}

std::string LayerNorm::extra() const {
  return str("(", weight_.size(0), ",), eps=", python_float(eps_), ", elementwise_affine=True");
}

void LayerNorm::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

LayerNorm2d::LayerNorm2d(int64_t channels, const ParamSource& params, double eps)
    : Module(params.path()),
      weight_(params.get("weight", {channels}, init::ones())),
      bias_(params.get("bias", {channels}, init::zeros())),
      eps_(eps) {}

Tensor LayerNorm2d::forward(const Tensor& x) const {
  if (x.rank() != 4 || x.size(1) != weight_.size(0)) {
    throw Error("LayerNorm2d", str("a feature map [B, ", weight_.size(0), ", H, W]"), x.shape().to_string());
  }
  const Tensor channels_last = ops::contiguous(x.permute({0, 2, 3, 1}));
  const Tensor normed = ops::layer_norm(channels_last, weight_, bias_, eps_);
  return traced(*this, ops::contiguous(normed.permute({0, 3, 1, 2})));
}

void LayerNorm2d::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

}  // namespace vitrail::nn
