// SPDX-License-Identifier: Apache-2.0
#pragma once
// Factories of the update rules, one per source file.  make_optimizer() has validated the options and filled in
// defaults.
#include "vitrail/optim/optimizer.h"

namespace vitrail::optim {

std::unique_ptr<Optimizer> make_adamw(const OptimizerOptions& options, std::vector<Parameter> parameters);
std::unique_ptr<Optimizer> make_lamb(const OptimizerOptions& options, std::vector<Parameter> parameters);
std::unique_ptr<Optimizer> make_lion(const OptimizerOptions& options, std::vector<Parameter> parameters);
std::unique_ptr<Optimizer> make_sgd(const OptimizerOptions& options, std::vector<Parameter> parameters);

// Calls visitor(float{}) or visitor(double{}), by the dtype of the weights, gradients and buffers.
template <class Visitor>
void dispatch_weights(const Tensor& weights, Visitor&& visitor) {
  if (weights.dtype() == DType::f64) {
    visitor(double{});
  } else {
    visitor(float{});
  }
}

}  // namespace vitrail::optim
