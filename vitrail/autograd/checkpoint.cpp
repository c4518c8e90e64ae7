// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/checkpoint.h"

#include <memory>
#include <utility>
#include <vector>

#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"

namespace vitrail::autograd {

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  if (!grad_enabled()) return function(x);
  Tensor result;
  std::vector<std::shared_ptr<Variable>> leaves;
  {
    const NoGrad scope;
    const LeavesRead read;
    result = function(x.detach());
    leaves = read.leaves();
  }
  if (!requires_grad(x) && leaves.empty()) return result;
  record(result, "checkpoint", {x}, [function, saved = x.detach(), needs_grad = requires_grad(x)](const Tensor& grad) {
    const GradMode scope(true);
    Tensor input = saved.detach();
    set_requires_grad(input, needs_grad);
    const Tensor output = function(input);
    if (requires_grad(output)) backward(output, grad);
    return std::vector<Tensor>{grad_of(input)};
  });
  variable_of(result)->producer->leaves = std::move(leaves);
  return result;
}

}  // namespace vitrail::autograd
