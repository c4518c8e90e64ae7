// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::models {

// σ(x) = (1 + tanh(x / 2)) / 2
inline Tensor sigmoid(const Tensor& x) {
  const Tensor half = Tensor::full({1}, 0.5);
  const Tensor curve = ops::activation(ops::mul(x, half), kernels::Activation::tanh);
  return ops::mul(ops::add(curve, Tensor::full({1}, 1)), half);
}

}  // namespace vitrail::models
