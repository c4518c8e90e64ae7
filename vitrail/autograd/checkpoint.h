// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::autograd {

// function(x), keeping nothing of what lies between: the backward pass computes it again (Chen et al. 2016, "Training
// deep nets with sublinear memory cost").  `function` must give the same result both times (random layers are keyed, so
// they do) and may use parameters besides x; gradients of theirs are added as in any backward pass.  One tensor in, one
// out.  Where nothing is recorded, just function(x).
Tensor checkpoint(const std::function<Tensor(const Tensor&)>& function, const Tensor& x);

}  // namespace vitrail::autograd
