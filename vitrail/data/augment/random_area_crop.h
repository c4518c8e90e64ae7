// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random crops of calibration images for post-training quantisation.
#include "vitrail/base/random.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

// A random rectangle with 30 % to 100 % of the image's area, not resized: the window of RandomResizedCrop (Szegedy et
// al. 2015, section 6) with a larger minimum area, so that most of the object stays visible.
image::Image random_area_crop(const image::Image& image, RandomStream& random);

}  // namespace vitrail::data
