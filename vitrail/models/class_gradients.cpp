// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/class_gradients.h"

#include <algorithm>
#include <map>

#include "vitrail/autograd/engine.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/trace.h"

namespace vitrail::models {
namespace {

constexpr const char* kInput = "images";

struct Forward {
  Tensor logits;
  std::map<std::string, Tensor> values;
};

// The forward pass with the values that are asked for.
Forward recorded_forward(const VisionTransformer& model, const Tensor& images, const std::vector<std::string>& names) {
  const autograd::GradMode recording(true);
  Tensor input = images.detach();
  autograd::set_requires_grad(input, true);
  Forward result;
  result.values[kInput] = input;
  std::optional<nn::TraceScope> scope;
  if (std::ranges::any_of(names, [](const std::string& name) { return name != kInput; })) {
    scope.emplace([&](const std::string& name, const Tensor& value) {
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

}  // namespace

std::vector<Tensor> class_gradients(const VisionTransformer& model, const Tensor& images,
                                    const ClassGradientOptions& options) {
  const VisionTransformerConfig& config = model.config();
  if (config.num_classes == 0 || config.projection_head || config.global_pool == GlobalPool::none)
    throw Error("class_gradients", "a model with a classifier of the pooled features", "one without");
  const Forward forward = recorded_forward(model, images, options.values);
  std::vector<Tensor> values;
  for (const std::string& name : options.values) {
    const auto found = forward.values.find(name);
    if (found == forward.values.end())
      throw Error("values", "\"images\", or a name that `vitrail inspect --trace` lists", "\"" + name + "\"");
    values.push_back(found->second);
  }
  std::vector<Tensor> gradients =
      autograd::gradients(forward.logits, values, one_hot(forward.logits.detach(), options.target));
  for (size_t i = 0; i < values.size(); ++i) {  // the last block has values that the head does not read
    if (!gradients[i].defined()) gradients[i] = Tensor::zeros(values[i].shape(), values[i].dtype());
  }
  return gradients;
}

}  // namespace vitrail::models
