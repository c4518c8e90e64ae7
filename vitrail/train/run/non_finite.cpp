// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/non_finite_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"
#include "vitrail/weights/finite_check_internal.h"

namespace vitrail::train {
namespace {

bool is_finite(const Tensor& tensor) {
  return !is_floating(tensor.dtype()) || !weights::first_non_finite(tensor.contiguous());
}

std::string describe(const std::string& name, const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f64).contiguous();
  double min = INFINITY, max = -INFINITY;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = values.data<double>()[i];
    if (!std::isfinite(value)) continue;
    min = std::min(min, value);
    max = std::max(max, value);
  }
  const std::string range = min <= max ? str("finite values ", min, " … ", max) : "no finite values";
  return str(name, " ", tensor.shape(), " (", range, ")");
}

}  // namespace

std::string first_non_finite_layer(const models::VisionTransformer& model, const Tensor& images) {
  const autograd::NoGrad no_grad;
  if (!is_finite(images)) return describe("the images", images);
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (!is_finite(parameter.tensor)) return describe("the weights of " + parameter.name, parameter.tensor);
  }
  std::string first;
  const nn::TraceScope trace([&](const std::string& name, const Tensor& tensor) {
    if (first.empty() && !is_finite(tensor)) first = describe("the output of " + name, tensor);
  });
  model.forward(images);
  return first.empty() ? "the loss: the output of every layer is finite" : first;
}

std::string non_finite_values(const std::string& name, const Tensor& tensor) {
  return is_finite(tensor) ? "" : describe(name, tensor);
}

std::string non_finite_gradient(const std::vector<optim::Parameter>& parameters) {
  for (auto p = parameters.rbegin(); p != parameters.rend(); ++p) {
    const Tensor gradient = autograd::grad_of(p->tensor);
    if (gradient.defined() && !is_finite(gradient)) return describe("the gradient of " + p->name, gradient);
  }
  return "the gradient norm: every gradient is finite, but the sum of their squares overflows";
}

}  // namespace vitrail::train
