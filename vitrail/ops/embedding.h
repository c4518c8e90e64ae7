// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Rows of a table by number: ids [..] (an integer type) and weight [V, C] → [.., C], as torch.nn.Embedding.
// Differentiable in weight: the gradients of equal ids are added.  Errors: an id outside [0, V).
Tensor embedding(const Tensor& ids, const Tensor& weight);

}  // namespace vitrail::ops
