// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/linear.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"

namespace vitrail::nn {

Linear::Linear(int64_t in_features, int64_t out_features, bool bias, const ParamSource& params)
    : Linear(in_features, out_features, bias, params,
             {init::torch_default(in_features), init::torch_default(in_features)}) {}

Linear::Linear(int64_t in_features, int64_t out_features, bool bias, const ParamSource& params,
               const init::LinearInit& init)
    : Module(params.path()), weight_(params.get("weight", {out_features, in_features}, init.weight)) {
  if (bias) bias_ = params.get("bias", {out_features}, init.bias);
}

Tensor Linear::apply(const Tensor& x, const Tensor& bias) const {
  const Tensor y = ops::linear(x, weight_, bias);
  if (!low_rank_) return y;
  const Tensor reduced = ops::linear(low_rank_->dropout.forward(x), low_rank_->a, {});
  return ops::add(y, ops::linear(reduced, ops::mul(low_rank_->b, low_rank_->scale), {}));
}

Tensor Linear::forward(const Tensor& x, kernels::Activation activation) const {
  if (!tracing() && !low_rank_) return ops::linear(x, weight_, bias_, activation);
  const Tensor out = traced(*this, apply(x, bias_));
  return activation == kernels::Activation::none ? out : ops::activation(out, activation);
}

Tensor Linear::forward_with_bias(const Tensor& x, const Tensor& bias) const {
  return traced(*this, apply(x, bias.defined() ? bias : bias_));
}

void Linear::set_low_rank(LowRank part) {
  const Shape a{part.a.size(0), in_features()}, b{out_features(), part.a.size(0)};
  if (!(part.a.shape() == a && part.b.shape() == b))
    throw Error(path(), str("a low-rank part of the shapes ", a, " and ", b),
                str(part.a.shape(), " and ", part.b.shape()));
  low_rank_ = std::move(part);
}

std::string Linear::extra() const {
  return str("in_features=", in_features(), ", out_features=", out_features(),
             ", bias=", bias_.defined() ? "True" : "False");
}

void Linear::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
  if (!low_rank_) return;
  visitor.parameter("lora_A.weight", low_rank_->a);
  visitor.parameter("lora_B.weight", low_rank_->b);
  visitor.child("lora_dropout", static_cast<Module&>(low_rank_->dropout));
}

}  // namespace vitrail::nn
