// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace extending {

// RMSNorm: x / √(mean(x²) + ε) · γ over the last axis (Zhang & Sennrich 2019, eq. 4, with ε as torch.nn.RMSNorm has
// it). x [..., C]; gamma [C] or undefined (1).  Differentiable.  Throws Error for a gamma of another shape.
vitrail::Tensor rms_norm(const vitrail::Tensor& x, const vitrail::Tensor& gamma, double eps);

}  // namespace extending
