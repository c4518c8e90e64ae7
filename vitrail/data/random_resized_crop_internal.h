// SPDX-License-Identifier: Apache-2.0
#pragma once
// Where a random crop lies; inside vitrail/data only.
#include "vitrail/base/random.h"
#include "vitrail/data/augment.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {

// torchvision's RandomResizedCrop.get_params: area and log aspect ratio uniform, ten tries, then the middle at the
// nearest ratio allowed.
image::Window resized_crop_window(const RandomResizedCrop& options, int64_t width, int64_t height,
                                  RandomStream& random);

// A rectangle of timm's RandomErasing, or an empty one where ten tries did not fit.  `share`: 1 / number of rectangles.
image::Window erased_window(const RandomErasing& options, double share, int64_t width, int64_t height,
                            RandomStream& random);

// Erases what is drawn from a normalised picture [channels, height, width].
void erase(const RandomErasing& options, int64_t channels, int64_t height, int64_t width, RandomStream& random,
           float* picture);

}  // namespace vitrail::data
