// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inputs of operations, for the tests of ops.
#include "vitrail/autograd/variable.h"

namespace vitrail::ops {

inline Tensor draw(const Shape& shape, uint64_t seed) { return Tensor::randn(shape, seed, DType::f64); }

// A copy that requires a gradient.
inline Tensor leaf_of(const Tensor& value) {
  Tensor leaf = value.clone();
  autograd::set_requires_grad(leaf, true);
  return leaf;
}

}  // namespace vitrail::ops
