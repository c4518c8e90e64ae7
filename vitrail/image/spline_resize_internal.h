// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resizing by cubic B-splines, as scikit-image's transform.resize does.
#include "vitrail/image/image_view.h"

namespace vitrail::image {

// transform.resize(…, order=3, anti_aliasing=True, preserve_range=True) and then astype(uint8): a Gaussian of
// σ = (reduction factor − 1) / 2 along an axis that becomes shorter, cubic B-spline interpolation with mirrored
// borders in double, clipped to the range of the source, truncated.  A value that is an integer may become the one
// below by rounding, as there.  source: grey or RGB.  Throws Error if a size is not positive.
Image resize_spline(const ImageView& source, int64_t width, int64_t height);

}  // namespace vitrail::image
