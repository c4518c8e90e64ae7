// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// autograd::checkpoint() for layers: the recomputation runs under the RandomScope and MixedPrecision of this call, so
// that it draws the same dropout masks and rounds alike.
Tensor checkpointed(std::function<Tensor(const Tensor&)> forward, const Tensor& x);

}  // namespace vitrail::nn
