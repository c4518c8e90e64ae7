// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"
#include "vitrail/train/run/gradient_all_reduce_internal.h"

namespace vitrail::train {
namespace {

std::vector<Tensor> tensors_of(const std::vector<optim::Parameter>& parameters) {
  std::vector<Tensor> tensors;
  for (const optim::Parameter& parameter : parameters) tensors.push_back(parameter.tensor);
  return tensors;
}

}  // namespace

// The gradients are summed, not averaged: each process weights its loss by its share of the images.
GradientAllReduce::GradientAllReduce(const ProcessGroup& group, const std::vector<optim::Parameter>& parameters)
    : parameters_(parameters),
      distributed_(group.size() > 1),
      reducer_(group.communicator(), tensors_of(parameters), {.average = false}) {
  for (size_t i = 0; i < parameters.size(); ++i) index_of_.emplace(parameters[i].tensor.autograd().get(), i);
}

autograd::BackwardOptions GradientAllReduce::begin() {
  if (!distributed_) return {};
  started_ = true;
  sent_.assign(parameters_.size(), false);
  reducer_.begin();
  autograd::BackwardOptions options;
  options.on_leaf = [this](autograd::Variable& leaf) {
    const auto found = index_of_.find(&leaf);
    if (found != index_of_.end()) send(found->second, leaf.grad);
  };
  return options;
}

void GradientAllReduce::send(size_t index, const Tensor& gradient) {
  sent_[index] = true;
  reducer_.ready(index, gradient);
}

void GradientAllReduce::finish() {
  if (!distributed_) return;
  if (!started_) begin();
  started_ = false;
  for (size_t i = parameters_.size(); i-- > 0;) {
    const Tensor gradient = sent_[i] ? Tensor() : autograd::grad_of(parameters_[i].tensor);
    if (gradient.defined()) send(i, gradient);
  }
  reducer_.finish();
}

}  // namespace vitrail::train
