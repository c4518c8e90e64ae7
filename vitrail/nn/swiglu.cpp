// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/swiglu.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {

SwiGlu::SwiGlu(const SwiGluConfig& config, const ParamSource& params)
    : Module(params.path()),
      fc1_(config.in_features, 2 * config.hidden_features, config.bias, params.child("fc1"),
           init::linear(config.init, init::Role::mlp, config.in_features, 2 * config.hidden_features)),
      fc2_(config.hidden_features, config.in_features, config.bias, params.child("fc2"),
           init::linear(config.init, init::Role::mlp, config.hidden_features, config.in_features)) {
  if (config.norm_eps) norm_.emplace(config.hidden_features, *config.norm_eps, params.child("norm"));
}

// ops::silu_gate() with the gate that a trace reports.
Tensor SwiGlu::gated_in_steps(const Tensor& both) const {
  const int64_t features = both.size(-1) / 2;
  const Tensor gate = ops::contiguous(both.narrow(-1, 0, features));
  const Tensor act = ops::activation(gate, kernels::Activation::silu);
  trace(*this, "act", act);
  return ops::mul(act, ops::contiguous(both.narrow(-1, features, features)));
}

Tensor SwiGlu::forward(const Tensor& x) const {
  const Tensor both = fc1_.forward(x);
  Tensor hidden = tracing() ? gated_in_steps(both) : ops::silu_gate(both);
  for (const char* name : {"gated", "drop1"}) trace(*this, name, hidden);
  if (norm_) {
    hidden = norm_->forward(hidden);
  } else {
    trace(*this, "norm", hidden);
  }
  const Tensor out = fc2_.forward(hidden);
  trace(*this, "drop2", out);
  return traced(*this, out);
}

void SwiGlu::visit(Visitor& visitor) {
  visitor.child("fc1", static_cast<Module&>(fc1_));
  if (norm_) visitor.child("norm", norm_);
  visitor.child("fc2", static_cast<Module&>(fc2_));
}

int64_t dinov2_swiglu_hidden(int64_t nominal_hidden) { return (nominal_hidden * 2 / 3 + 7) / 8 * 8; }

}  // namespace vitrail::nn
