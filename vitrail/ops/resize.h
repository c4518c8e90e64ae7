// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Bilinear interpolation of the last two axes, x [..., h, w] → [..., height, width], with half-pixel centres and
// without antialiasing: torch's interpolate(mode="bilinear", align_corners=False).  Differentiable.
Tensor resize_bilinear(const Tensor& x, int64_t height, int64_t width);

}  // namespace vitrail::ops
