#pragma once
// Element-wise and data-moving operations.
#include <vector>

#include "vitrail/kernels/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

Tensor add(const Tensor& a, const Tensor& b);  // broadcast as NumPy does
Tensor mul(const Tensor& a, const Tensor& b);
Tensor activation(const Tensor& x, kernels::Activation kind);
Tensor silu_gate(const Tensor& x);                       // x [..., 2C] → silu(first half) · second half, [..., C]
Tensor cat(const std::vector<Tensor>& parts, int axis);  // all other extents agree
Tensor mean(const Tensor& x, int axis);                  // drops the axis
Tensor contiguous(const Tensor& x);                      // x itself when it already is
// What is multiplied in during training with probability p of zero: each element 0 or 1 / (1 − p), drawn under `key`.
Tensor dropout_mask(const Shape& shape, double p, uint64_t key, DType dtype);

}  // namespace vitrail::ops
