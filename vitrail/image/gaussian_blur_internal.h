// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/image/image.h"

namespace vitrail::image {

// Pillow's ImageFilter.GaussianBlur(radius), with equal pixels, in place, for grey and colour images: three extended
// box filters along rows and then along columns (Gwosdek et al. 2011, "Theoretical foundations of Gaussian convolution
// by extended box filtering"), whose pixels at the edges repeat.  radius: the standard deviation in pixels, at least 0;
// 0 changes nothing.
void gaussian_blur(Image& image, double radius);

}  // namespace vitrail::image
