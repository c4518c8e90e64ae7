#include "vitrail/nn/swiglu.h"

#include "vitrail/nn/trace.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::nn {

SwiGlu::SwiGlu(const SwiGluConfig& config, const ParamSource& params)
    : Module(params.path()),
      w12_(config.in_features, 2 * config.hidden_features, config.bias, params.child("w12"),
           init::linear(config.init, init::Role::mlp, config.in_features, 2 * config.hidden_features)),
      w3_(config.hidden_features, config.in_features, config.bias, params.child("w3"),
          init::linear(config.init, init::Role::mlp, config.hidden_features, config.in_features)) {}

Tensor SwiGlu::forward(const Tensor& x) const {
  const Tensor hidden = ops::silu_gate(w12_.forward(x));
  trace(*this, "gate", hidden);
  const Tensor out = w3_.forward(hidden);
  trace(*this, "w3", out);
  return out;
}

void SwiGlu::visit(Visitor& visitor) {
  visitor.child("w12", static_cast<Module&>(w12_));
  visitor.child("w3", static_cast<Module&>(w3_));
}

int64_t dinov2_swiglu_hidden(int64_t nominal_hidden) { return (nominal_hidden * 2 / 3 + 7) / 8 * 8; }

}  // namespace vitrail::nn
