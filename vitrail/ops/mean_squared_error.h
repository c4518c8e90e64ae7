// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The mean of (a − b)² over all elements of two tensors of one shape, a scalar.  Differentiable in both.  For training:
// it has no operator of ONNX.  Source: torch.nn.functional.mse_loss.  Throws Error for other shapes and without
// elements.
Tensor mean_squared_error(const Tensor& a, const Tensor& b);

}  // namespace vitrail::ops
