// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of pictures, to calibrate by.
#include "vitrail/base/random.h"
#include "vitrail/image/image.h"

namespace vitrail::data {

// A rectangle of the picture with three tenths to all of its area, as pictures are cut for training (Szegedy et al.
// 2015, section 6; there from 0.08 on).
image::Image random_area_crop(const image::Image& picture, RandomStream& random);

}  // namespace vitrail::data
