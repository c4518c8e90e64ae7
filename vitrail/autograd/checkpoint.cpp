// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/checkpoint.h"

#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"

namespace vitrail::autograd {

Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x) {
  if (!grad_enabled()) return function(x);
  Tensor result;
  {
    const NoGrad scope;
    result = function(x.detach());
  }
  record(result, "checkpoint", {x}, [function, saved = x.detach(), needs_grad = requires_grad(x)](const Tensor& grad) {
    const GradMode scope(true);
    Tensor input = saved.detach();
    set_requires_grad(input, needs_grad);
    const Tensor output = function(input);
    if (requires_grad(output)) backward_within(output, grad, variable_of(input).get());
    return std::vector<Tensor>{grad_of(input)};
  });
  return result;
}

}  // namespace vitrail::autograd
