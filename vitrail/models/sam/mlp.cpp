// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/mlp.h"

#include "vitrail/nn/trace.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMlpDepth = 3;

}  // namespace

SamMlp::SamMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params)
    : Module(params.path()), layers_(params.child("layers").path()) {
  for (int64_t i = 0; i < kMlpDepth; ++i) {
    layers_.emplace_back(i == 0 ? in : hidden, i + 1 == kMlpDepth ? out : hidden, true,
                         params.child("layers").child(i));
  }
}

Tensor SamMlp::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i].forward(y, i + 1 < layers_.size() ? kernels::Activation::relu : kernels::Activation::none);
  }
  return traced(*this, y);
}

void SamMlp::visit(nn::Visitor& visitor) { visitor.child("layers", static_cast<nn::Module&>(layers_)); }

}  // namespace vitrail::models
