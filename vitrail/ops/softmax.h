// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Softmax over the last axis; a row of all −∞ gives zeros.  Differentiable.
Tensor softmax(const Tensor& x);

}  // namespace vitrail::ops
