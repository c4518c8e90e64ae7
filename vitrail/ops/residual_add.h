// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x + keep · scale · y: adds a residual branch y.  x, y [B, ..., C].  scale [C]: γ of LayerScale (Touvron et al. 2021,
// "Going deeper with image transformers"), or undefined.  keep f64 [B]: the factor of stochastic depth per sample (0 or
// 1 / (1 − p)), or undefined.  Differentiable in x, y and scale.
Tensor residual_add(const Tensor& x, const Tensor& y, const Tensor& scale = {}, const Tensor& keep = {});

}  // namespace vitrail::ops
