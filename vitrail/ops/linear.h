// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/kernels/rowwise/activation.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// activation(x Wᵀ + b).  x [..., in], weight [out, in], bias [out] or undefined → [..., out].  Differentiable.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias,
              kernels::Activation activation = kernels::Activation::none);

// a [..., m, k] · b [..., k, n] → [..., m, n], with equal leading axes.  Differentiable.
Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace vitrail::ops
