// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

// Gradient checkpointing (Chen et al. 2016, "Training deep nets with sublinear memory cost"): returns function(x)
// without storing its intermediate results; the backward pass computes them again.  `function` must return the same
// result both times, which random layers do because their draws are keyed.  It may use parameters, which receive
// gradients as usual.  If x and the parameters require no gradient, this is a plain call.
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x);

}  // namespace vitrail::autograd
