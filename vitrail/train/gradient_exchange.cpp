// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"
#include "vitrail/train/gradient_exchange_internal.h"

namespace vitrail::train {
namespace {

std::vector<Tensor> tensors_of(const std::vector<optim::Parameter>& parameters) {
  std::vector<Tensor> tensors;
  for (const optim::Parameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

}  // namespace

// Sums: each process has weighed its losses by its share of the images already.
GradientExchange::GradientExchange(const ProcessGroup& crew, const std::vector<optim::Parameter>& parameters)
    : parameters_(parameters),
      several_(crew.size() > 1),
      reducer_(crew.communicator(), tensors_of(parameters), {.average = false}) {
  for (size_t i = 0; i < parameters.size(); ++i) index_of_.emplace(parameters[i].tensor.autograd().get(), i);
}

autograd::BackwardOptions GradientExchange::begin() {
  if (!several_) return {};
  begun_ = true;
  sent_.assign(parameters_.size(), false);
  reducer_.begin();
  autograd::BackwardOptions options;
  options.on_leaf = [this](autograd::Variable& leaf) {
    const auto found = index_of_.find(&leaf);
    if (found != index_of_.end()) send(found->second, leaf.grad);
  };
  return options;
}

void GradientExchange::send(size_t index, const Tensor& gradient) {
  sent_[index] = true;
  reducer_.ready(index, gradient);
}

void GradientExchange::complete() {
  if (!several_) return;
  if (!begun_) begin();
  begun_ = false;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor gradient = sent_[i] ? Tensor() : autograd::grad_of(parameters_[i].tensor);
    if (gradient.defined()) send(i, gradient);
  }
  reducer_.finish();
}

}  // namespace vitrail::train
