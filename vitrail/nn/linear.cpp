// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/linear.h"

#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
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

Tensor Linear::forward(const Tensor& x, kernels::Activation activation) const {
  if (!tracing()) return ops::linear(x, weight_, bias_, activation);
  const Tensor out = traced(*this, ops::linear(x, weight_, bias_));
  return activation == kernels::Activation::none ? out : ops::activation(out, activation);
}

Tensor Linear::forward_with_bias(const Tensor& x, const Tensor& bias) const {
  return traced(*this, ops::linear(x, weight_, bias.defined() ? bias : bias_));
}

std::string Linear::extra() const {
  return str("in_features=", in_features(), ", out_features=", out_features(),
             ", bias=", bias_.defined() ? "True" : "False");
}

void Linear::visit(Visitor& visitor) {
  visitor.parameter("weight", weight_);
  visitor.parameter("bias", bias_);
}

}  // namespace vitrail::nn
