// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Bilinear interpolation of the last two axes, x [..., h, w] → [..., height, width], with half-pixel centres and
// without antialiasing: torch's interpolate(mode="bilinear", align_corners=False).  Differentiable.
Tensor resize_bilinear(const Tensor& x, int64_t height, int64_t width);

// The samples of a map are at the centres of its cells, or the corner samples of both maps coincide (torch's
// align_corners=True).
enum class Corners : uint8_t { half_pixel, aligned };

// The same for a map with its channels last, x [B, h, w, C] → [B, height, width, C].  Differentiable.
Tensor resize_map(const Tensor& x, int64_t height, int64_t width, Corners corners = Corners::half_pixel);

}  // namespace vitrail::ops
