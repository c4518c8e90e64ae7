// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/random_area_crop.h"

#include "vitrail/data/augment/random_resized_crop_internal.h"
#include "vitrail/image/crop_internal.h"

namespace vitrail::data {

image::Image random_area_crop(const image::Image& image, RandomStream& random) {
  const RandomResizedCrop options{.scale = {0.3, 1.0}};
  return image::crop(image, resized_crop_window(options, image.width, image.height, random));
}

}  // namespace vitrail::data
