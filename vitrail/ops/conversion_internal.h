// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Converts as Tensor::to, but is not differentiable, and vectorised between f32 and bf16 for mixed precision.
Tensor converted(const Tensor& tensor, DType dtype);

}  // namespace vitrail::ops
