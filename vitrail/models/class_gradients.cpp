// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/class_gradients.h"

#include <algorithm>
#include <map>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/error.h"
#include "vitrail/models/classifier_internal.h"

namespace vitrail::models {
namespace {

constexpr const char* kInput = "images";

struct Forward {
  Tensor logits;
  std::map<std::string, Tensor> values;
};

Tensor differentiable_input(const Tensor& images) {
  Tensor input = images.detach();
  autograd::set_requires_grad(input, true);
  return input;
}

// The forward pass with the values that are asked for.
Forward recorded_forward(const VisionTransformer& model, const Tensor& images, const ClassGradientOptions& options) {
  const std::vector<std::string>& names = options.values;
  const autograd::GradMode recording(true);
  const Tensor input = differentiable_input(images);
  Forward result;
  result.values[kInput] = input;
  std::optional<nn::TraceScope> scope;
  if (options.on_value || std::ranges::any_of(names, [](const std::string& name) { return name != kInput; })) {
    scope.emplace([&](const std::string& name, const Tensor& value) {
      if (options.on_value) options.on_value(name, value);
      if (std::ranges::find(names, name) != names.end()) result.values[name] = value;
    });
  }
  result.logits = model.forward(input);
  return result;
}

// 1 at the target of each row, else 0.
Tensor one_hot(const Tensor& logits, std::optional<int64_t> target) {
  const int64_t classes = logits.size(1);
  if (target && (*target < 0 || *target >= classes))
    throw Error("target", str("a class from 0 to ", classes - 1), str(*target));
  const Tensor values = logits.to(DType::f64).contiguous(), result = Tensor::zeros(logits.shape(), DType::f64);
  for (int64_t row = 0; row < logits.size(0); ++row) {
    const double* const of_row = values.data<double>() + row * classes;
    const int64_t highest = std::max_element(of_row, of_row + classes) - of_row;
    result.data<double>()[row * classes + target.value_or(highest)] = 1;
  }
  return result.to(logits.dtype());
}

// The last block has values that the head does not read.
Tensor or_zeros(const Tensor& gradient, const Tensor& value) {
  return gradient.defined() ? gradient : Tensor::zeros(value.shape(), value.dtype());
}

}  // namespace

std::vector<Tensor> class_gradients(const VisionTransformer& model, const Tensor& images,
                                    const ClassGradientOptions& options) {
  require_classifier_of_images(model.config(), "class_gradients");
  const Forward forward = recorded_forward(model, images, options);
  std::vector<Tensor> values;
  for (const std::string& name : options.values) {
    const auto found = forward.values.find(name);
    if (found == forward.values.end())
      throw Error("values", "\"images\", or a name that `vitrail inspect --trace` lists", "\"" + name + "\"");
    values.push_back(found->second);
  }
  std::vector<Tensor> gradients =
      autograd::gradients(forward.logits, values, one_hot(forward.logits.detach(), options.target));
  for (size_t i = 0; i < values.size(); ++i) gradients[i] = or_zeros(gradients[i], values[i]);
  return gradients;
}

std::vector<nn::NamedTensor> all_class_gradients(VisionTransformer& model, const Tensor& images,
                                                 std::optional<int64_t> target) {
  require_classifier_of_images(model.config(), "class_gradients");
  const autograd::GradMode recording(true);
  model.requires_grad(true);
  const Tensor input = differentiable_input(images);
  std::vector<nn::NamedTensor> values{{kInput, input}};
  Tensor logits;
  {
    const nn::TraceScope scope([&](const std::string& name, const Tensor& value) {
      if (autograd::requires_grad(value)) autograd::retain_grad(value);
      values.push_back({name, value});
    });
    logits = model.forward(input);
  }
  autograd::backward(logits, one_hot(logits.detach(), target));
  std::ranges::copy(model.named_parameters(), std::back_inserter(values));
  for (nn::NamedTensor& value : values) value.tensor = or_zeros(autograd::grad_of(value.tensor), value.tensor);
  model.requires_grad(false);
  return values;
}

}  // namespace vitrail::models
