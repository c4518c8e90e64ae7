// SPDX-License-Identifier: Apache-2.0
#pragma once
// Gaussian smoothing of maps of one value per pixel.
#include <optional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::image {

// plane [height, width] f32, smoothed as scipy.ndimage.gaussian_filter does by default: the kernel ends at 4 σ or at
// the radius, the plane is mirrored at its edges with the edge pixels repeated.  sigma in pixels, above 0.  Throws
// Error otherwise.
Tensor gaussian_filter(const Tensor& plane, double sigma, std::optional<int64_t> radius = {});

}  // namespace vitrail::image
