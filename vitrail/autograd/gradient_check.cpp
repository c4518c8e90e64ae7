// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/gradient_check.h"

#include <algorithm>
#include <cmath>

#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"

namespace vitrail::autograd {
namespace {

double weighted_sum(const Tensor& output, const Tensor& weights) {
  const Tensor values = output.contiguous();
  double sum = 0;
  for (int64_t i = 0; i < values.numel(); ++i) sum += values.data<double>()[i] * weights.data<double>()[i];
  return sum;
}

}  // namespace

GradientCheck check_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, double step) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    if (input.dtype() != DType::f64) throw Error("check_gradients", "f64 inputs", name_of(input.dtype()));
    leaves.push_back(input.clone());
    set_requires_grad(leaves.back(), true);
  }
  const Tensor output = function(leaves);
  const Tensor weights = Tensor::randn(output.shape(), 17, DType::f64);
  backward(output, weights);

  GradientCheck result;
  const NoGrad scope;
  for (size_t n = 0; n < leaves.size(); ++n) {
    const Tensor grad = grad_of(leaves[n]);
    if (!grad.defined()) throw Error("check_gradients", "a gradient for every input", str("none for input ", n));
    const Tensor analytic_grad = grad.contiguous();
    for (int64_t i = 0; i < leaves[n].numel(); ++i) {
      double& element = leaves[n].data<double>()[i];
      const double original = element;
      element = original + step;
      const double above = weighted_sum(function(leaves), weights);
      element = original - step;
      const double below = weighted_sum(function(leaves), weights);
      element = original;
      const double numerical = (above - below) / (2 * step), analytic = analytic_grad.data<double>()[i];
      const double error = std::abs(numerical - analytic) / std::max({1.0, std::abs(numerical), std::abs(analytic)});
      if (!(error <= result.worst)) result = {error, static_cast<int>(n), i, numerical, analytic};
      if (std::isnan(result.worst)) return result;  // no later error compares with it
    }
  }
  return result;
}

}  // namespace vitrail::autograd
