// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::image {

// Bicubic interpolation of a plane of floats, x [h, w] → [height, width], with a = −0.75, half-pixel centres, borders
// repeated and without antialiasing: torch's interpolate(mode="bicubic", align_corners=False).
Tensor resize_plane(const Tensor& x, int64_t height, int64_t width);

}  // namespace vitrail::image
