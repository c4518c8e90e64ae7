// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise operations.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Broadcast as NumPy does; the result has a's dtype.  Differentiable in both.
Tensor add(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);

// The gradient of something broadcast from `shape`, given that of the result: summed over the repeated axes.
Tensor reduced_to(const Tensor& grad, const Shape& shape);

// What dropout multiplies with: x [B, ...] of `shape`, each element 0 with probability p, else 1 / (1 − p).  Sample b's
// elements are drawn under (key, positions[b]), or (key, b) when there are no positions: a sample has the same draws in
// whatever batch, process or thread it is.  p in [0, 1).
Tensor dropout_mask(const Shape& shape, double p, uint64_t key, const std::vector<int64_t>& positions, DType dtype);

}  // namespace vitrail::ops
