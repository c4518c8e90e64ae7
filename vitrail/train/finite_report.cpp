// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/finite_report.h"

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

std::string described(const std::string& name, const Tensor& tensor) {
  const Tensor values = tensor.to(DType::f64).contiguous();
  double least = INFINITY, most = -INFINITY;
  for (int64_t i = 0; i < values.numel(); ++i) {
    const double value = values.data<double>()[i];
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
  }
  const std::string range = least <= most ? str("finite part ", least, " … ", most) : "nothing in it is finite";
  return str(name, " ", tensor.shape(), " (", range, ")");
}

}  // namespace

std::string first_non_finite_layer(const models::VisionTransformer& model, const Tensor& images) {
  const autograd::NoGrad no_grad;
  if (!is_finite(images)) return described("the images", images);
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    if (!is_finite(parameter.tensor)) return described("the weights of " + parameter.name, parameter.tensor);
  }
  std::string first;
  const nn::TraceScope trace([&](const std::string& name, const Tensor& tensor) {
    if (first.empty() && !is_finite(tensor)) first = described("the output of " + name, tensor);
  });
  model.forward(images);
  return first.empty() ? "the loss itself: every layer's output is finite" : first;
}

std::string non_finite_gradient(const std::vector<optim::Parameter>& parameters) {
  for (auto at = parameters.rbegin(); at != parameters.rend(); ++at) {
    const Tensor gradient = autograd::grad_of(at->tensor);
    if (gradient.defined() && !is_finite(gradient)) return described("the gradient of " + at->name, gradient);
  }
  return "the norm itself: every gradient is finite, their squares are too large to add";
}

}  // namespace vitrail::train
