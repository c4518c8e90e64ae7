// SPDX-License-Identifier: Apache-2.0
#include "vitrail/optim/optimizer.h"

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/optim/chunks_internal.h"
#include "vitrail/optim/named_tensors_internal.h"

namespace vitrail::optim {

Optimizer::Optimizer(std::vector<Parameter> parameters, std::vector<std::string> buffers)
    : parameters_(std::move(parameters)), buffer_names_(std::move(buffers)) {
  std::vector<nn::NamedTensor> weights;
  for (const Parameter& p : parameters_) {
    weights.push_back({p.name, p.tensor});
    if (!(p.weight_decay >= 0) || !(p.rate_scale >= 0)) {
      throw Error("optimizer", "a weight decay and a learning rate scale of at least 0",
                  str(p.weight_decay, " and ", p.rate_scale, " for '", p.name, "'"));
    }
  }
  check_trainable(weights, "optimizer");
  buffers_.resize(buffer_names_.size());
  for (std::vector<Tensor>& buffer : buffers_) {
    for (const Parameter& p : parameters_) buffer.push_back(Tensor::zeros(p.tensor.shape(), p.tensor.dtype()));
  }
  chunks_ = make_chunks(parameters_);
}

void Optimizer::step(double rate, double gradient_scale, double decay_scale) {
  collect_gradients();
  ++steps_;
  decay_scale_ = decay_scale;
  update(rate, gradient_scale);
  gradients_.clear();
}

void Optimizer::collect_gradients() {
  gradients_.clear();
  for (const Parameter& p : parameters_) {
    const Tensor gradient = autograd::grad_of(p.tensor);
    if (gradient.defined() && (!(gradient.shape() == p.tensor.shape()) || gradient.dtype() != p.tensor.dtype())) {
      throw Error("optimizer",
                  str("a gradient ", name_of(p.tensor.dtype()), " ", p.tensor.shape(), " of '", p.name, "'"),
                  str(name_of(gradient.dtype()), " ", gradient.shape()));
    }
    gradients_.push_back(gradient.defined() ? gradient.contiguous() : gradient);
  }
}

void Optimizer::clear_gradients() const {
  for (const Parameter& p : parameters_) autograd::clear_grad(p.tensor);
}

void Optimizer::for_each_chunk(const std::function<void(size_t, const Chunk&)>& body) const {
  parallel_for(0, static_cast<int64_t>(chunks_.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      if (gradients_[chunks_[c].parameter].defined()) body(static_cast<size_t>(c), chunks_[c]);
    }
  });
}

std::vector<nn::NamedTensor> Optimizer::state() const {
  std::vector<nn::NamedTensor> state{{"step", Tensor::from<int64_t>({}, {steps_})}};
  for (size_t b = 0; b < buffers_.size(); ++b) {
    for (size_t p = 0; p < parameters_.size(); ++p) {
      state.push_back({buffer_names_[b] + "." + parameters_[p].name, buffers_[b][p]});
    }
  }
  return state;
}

void Optimizer::load_state(const std::vector<nn::NamedTensor>& from) {
  const std::vector<nn::NamedTensor> into = state();
  copy_by_name(from, into, "optimizer state");
  const int64_t steps = into[0].tensor.item<int64_t>();
  if (steps < 0) throw Error("optimizer state", "at least 0 steps", str(steps));
  steps_ = steps;
}

}  // namespace vitrail::optim
