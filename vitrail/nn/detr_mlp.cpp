// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/detr_mlp.h"

#include "vitrail/nn/trace.h"

namespace vitrail::nn {
namespace {

constexpr int64_t kDetrMlpDepth = 3;

}  // namespace

DetrMlp::DetrMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params)
    : Module(params.path()), layers_(params.child("layers").path()) {
  for (int64_t i = 0; i < kDetrMlpDepth; ++i) {
    layers_.emplace_back(i == 0 ? in : hidden, i + 1 == kDetrMlpDepth ? out : hidden, true,
                         params.child("layers").child(i));
  }
}

Tensor DetrMlp::forward(const Tensor& x) const {
  Tensor y = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    y = layers_[i].forward(y, i + 1 < layers_.size() ? kernels::Activation::relu : kernels::Activation::none);
  }
  return traced(*this, y);
}

void DetrMlp::visit(Visitor& visitor) { visitor.child("layers", static_cast<Module&>(layers_)); }

}  // namespace vitrail::nn
