// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Softmax over the last axis.  A row in which all elements are −∞ becomes 0.  Differentiable.
Tensor softmax(const Tensor& x);

}  // namespace vitrail::ops
