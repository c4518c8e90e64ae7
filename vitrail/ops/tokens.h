// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations that move or average whole rows: what happens to tokens between two computations.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor cat(const std::vector<Tensor>& parts, int axis);  // all other extents agree; differentiable
Tensor mean(const Tensor& x, int axis);                  // drops the axis; differentiable
Tensor contiguous(const Tensor& x);                      // x itself when it already is; differentiable

// x [B, N, C], and for each sample the tokens to keep, in order, as many in each → [B, kept, C].  Differentiable; a
// token may stand several times.
Tensor gather_tokens(const Tensor& x, const std::vector<std::vector<int64_t>>& kept);

}  // namespace vitrail::ops
