// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// The rows of weight [V, C] with the indices ids [...] (integers) → [..., C], as torch.nn.Embedding.
// Differentiable in weight; the gradients of equal ids are summed.  Throws Error for an id outside [0, V).
Tensor embedding(const Tensor& ids, const Tensor& weight);

}  // namespace vitrail::ops
