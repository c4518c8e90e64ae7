// SPDX-License-Identifier: Apache-2.0
#pragma once
// The window of torchvision's RandomResizedCrop.
#include "vitrail/base/random.h"
#include "vitrail/data/augment/augment.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {

// RandomResizedCrop.get_params: area and log aspect ratio are uniform.  After ten windows that do not fit: the centre,
// at the nearest allowed ratio.
image::Window resized_crop_window(const RandomResizedCrop& options, int64_t width, int64_t height,
                                  RandomStream& random);

}  // namespace vitrail::data
