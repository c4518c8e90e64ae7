// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x [..., B, S] with each column sorted over B in ascending order, as torch.sort(dim=-2); NaN is last.  Differentiable:
// the gradient of a value goes to where it was; equal values keep their order.  For losses: it has no operator of ONNX.
// Throws Error for a rank below 2.
Tensor sort_columns(const Tensor& x);

}  // namespace vitrail::ops
