// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// γ · (x − mean) / √(variance + ε) + β over the last axis, biased variance (Ba, Kiros & Hinton 2016).
// x [..., C]; gamma, beta [C] or undefined (1 and 0).  Differentiable.
Tensor layer_norm(const Tensor& x, const Tensor& gamma, const Tensor& beta, double eps);

}  // namespace vitrail::ops
