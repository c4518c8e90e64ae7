// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Tensor::to of a tensor without a place in a graph, but by vector code between f32 and bf16: mixed precision goes to
// and fro between them.
Tensor converted(const Tensor& tensor, DType dtype);

}  // namespace vitrail::ops
