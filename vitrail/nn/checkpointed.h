// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// autograd::checkpoint for layers: forward(x) under the RandomScope and the MixedPrecision of now, both times.
Tensor checkpointed(std::function<Tensor(const Tensor&)> forward, const Tensor& x);

}  // namespace vitrail::nn
