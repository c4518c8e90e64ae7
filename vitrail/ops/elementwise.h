// SPDX-License-Identifier: Apache-2.0
#pragma once
// Element-wise operations, and the mask of dropout.
#include <vector>

#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// a + b and a · b, with NumPy's broadcasting.  The result has a's dtype.  Differentiable in both.
Tensor add(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);

Tensor exp(const Tensor& x);  // differentiable; for losses: it has no operator of ONNX

// The gradient of a tensor of `shape` that was broadcast, given that of the result: the sum over the repeated axes.
Tensor reduced_to(const Tensor& grad, const Shape& shape);

// The factors of dropout: [B, ...] of `shape`, each element 0 with probability p, else 1 / (1 − p).  The draws of
// sample b depend on (key, positions[b]), or on (key, b) if there are no positions; so a sample has the same draws in
// every batch, process and thread.  p in [0, 1).  Throws Error for a wrong number of positions.
Tensor dropout_mask(const Shape& shape, double p, uint64_t key, const std::vector<int64_t>& positions, DType dtype);

}  // namespace vitrail::ops
