// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/mlp.h"

#include "vitrail/nn/trace.h"

namespace vitrail::nn {
namespace {

int64_t hidden_of(const MlpConfig& config) { return config.hidden_features.value_or(4 * config.in_features); }
int64_t out_of(const MlpConfig& config) { return config.out_features.value_or(config.in_features); }

}  // namespace

Mlp::Mlp(const MlpConfig& config, const ParamSource& params)
    : Module(params.path()),
      config_(config),
      fc1_(config.in_features, hidden_of(config), config.bias, params.child(config.sam_names ? "lin1" : "fc1"),
           init::linear(config.init, init::Role::mlp, config.in_features, hidden_of(config))),
      drop1_(config.dropout, params.child("drop1").path()),
      fc2_(hidden_of(config), out_of(config), config.bias, params.child(config.sam_names ? "lin2" : "fc2"),
           init::linear(config.init, init::Role::mlp, hidden_of(config), out_of(config))),
      drop2_(config.dropout, params.child("drop2").path()) {
  if (config.norm_eps) norm_.emplace(config.in_features, *config.norm_eps, params.child("norm"));
  if (config.hidden_norm_eps) norm_.emplace(hidden_of(config), *config.hidden_norm_eps, params.child("norm"));
}

Tensor Mlp::forward(const Tensor& x) const {
  const Tensor input = config_.norm_eps ? norm_->forward(x) : x;
  const Tensor hidden = fc1_.forward(input, config_.activation);
  trace(*this, "act", hidden);
  Tensor dropped = drop1_.forward(hidden);
  if (config_.hidden_norm_eps) dropped = norm_->forward(dropped);
  if (!norm_) trace(*this, "norm", dropped);  // the place of hidden_norm_eps's
  return traced(*this, drop2_.forward(fc2_.forward(dropped)));
}

void Mlp::visit(Visitor& visitor) {
  if (config_.norm_eps) visitor.child("norm", norm_);
  visitor.child(config_.sam_names ? "lin1" : "fc1", static_cast<Module&>(fc1_));
  visitor.note("act", activation_text(config_.activation));
  visitor.child("drop1", static_cast<Module&>(drop1_));
  if (config_.hidden_norm_eps) visitor.child("norm", norm_);
  visitor.child(config_.sam_names ? "lin2" : "fc2", static_cast<Module&>(fc2_));
  visitor.child("drop2", static_cast<Module&>(drop2_));
}

std::string activation_text(kernels::Activation activation) {
  switch (activation) {
    case kernels::Activation::none:
      return "Identity()";
    case kernels::Activation::gelu:
      return "GELU(approximate='none')";
    case kernels::Activation::gelu_tanh:
      return "GELU(approximate='tanh')";
    case kernels::Activation::quick_gelu:
      return "QuickGELU()";
    case kernels::Activation::relu:
      return "ReLU()";
    case kernels::Activation::silu:
      return "SiLU()";
    case kernels::Activation::tanh:
      return "Tanh()";
  }
  return "";
}

}  // namespace vitrail::nn
