// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// x + keep · scale · y: the end of a residual branch.  x, y [B, ..., C]; scale [C] is LayerScale's γ (Touvron et al.
// 2021, "Going deeper with image transformers") or undefined; keep [B] is stochastic depth's factor per sample (0, or
// 1 / (1 − p)), f64 or undefined.  Differentiable in x, y and scale.
Tensor residual_add(const Tensor& x, const Tensor& y, const Tensor& scale = {}, const Tensor& keep = {});

}  // namespace vitrail::ops
