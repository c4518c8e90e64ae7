// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs of operations, for the tests of ops.
#include <functional>

#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"

namespace vitrail::ops {

inline Tensor draw(const Shape& shape, uint64_t seed) { return Tensor::randn(shape, seed, DType::f64); }

// A copy that requires a gradient.
inline Tensor leaf_of(const Tensor& value) {
  Tensor leaf = value.clone();
  autograd::set_requires_grad(leaf, true);
  return leaf;
}

// Random values whose first and last axes are exchanged in memory.
inline Tensor strided_draw(const Shape& shape, DType dtype) {
  if (shape.rank() < 2) return Tensor::randn(shape, 99, dtype);
  Shape stored = shape;
  std::swap(stored[0], stored[shape.rank() - 1]);
  return Tensor::randn(stored, 99, dtype).transpose(0, shape.rank() - 1);
}

// The gradients of the inputs in this dtype, for a fixed random gradient of the output, which is not contiguous.
inline std::vector<Tensor> gradients_of(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                                        const std::vector<Tensor>& inputs, DType dtype) {
  std::vector<Tensor> leaves;
  for (const Tensor& input : inputs) {
    leaves.push_back(input.to(dtype).clone());
    autograd::set_requires_grad(leaves.back(), true);
  }
  const Tensor out = function(leaves);
  autograd::backward(out, strided_draw(out.shape(), out.dtype()));
  std::vector<Tensor> grads;
  for (const Tensor& leaf : leaves) grads.push_back(autograd::grad_of(leaf));
  return grads;
}

}  // namespace vitrail::ops
