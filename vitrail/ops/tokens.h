// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations that move or average tokens.
#include <vector>

#include "vitrail/ops/layout.h"

namespace vitrail::ops {

Tensor cat(const std::vector<Tensor>& parts, int axis);  // all other extents must be equal; differentiable
Tensor mean(const Tensor& x, int axis);                  // drops the axis; differentiable

// Picks tokens of each sample: x [B, N, C], indices [B][K] in any order and with repetitions → [B, K, C].
// Differentiable.
Tensor gather_tokens(const Tensor& x, const std::vector<std::vector<int64_t>>& indices);

}  // namespace vitrail::ops
