// SPDX-License-Identifier: Apache-2.0
#pragma once
// Trimaps: where alpha is known to be 0 or 1.
#include "vitrail/image/image.h"
#include "vitrail/sam/binary_mask.h"

namespace vitrail::tasks {

// The trimap of a mask: 255 where the square of 2·band + 1 pixels around a pixel is in the object (erosion), 0 where it
// is outside (the complement of the dilation), 128 between.  Pixels beyond the image do not count: an object that the
// image's edge cuts has no band there.
image::Image trimap_of(const sam::BinaryMask& mask, int64_t band);

// The share of pixels that are neither 0 nor 255.
double unknown_share(const image::Image& trimap);

}  // namespace vitrail::tasks
