// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// γ · x / √(mean(x²) + ε) over the last axis (Zhang & Sennrich 2019, eq. 4).  x [..., C]; gamma [C] or undefined.
// Differentiable.  Throws Error for shapes that do not match.
Tensor rms_norm(const Tensor& x, const Tensor& gamma, double eps);

}  // namespace vitrail::ops
