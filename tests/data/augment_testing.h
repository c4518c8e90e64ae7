// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images and transforms of the augmentation tests.
#include "vitrail/base/random.h"
#include "vitrail/image/transform.h"

namespace vitrail::data {

inline image::Image noise_image(int64_t width, int64_t height, int64_t channels = 3) {
  image::Image image = image::make_image(width, height, channels);
  RandomStream random(random_key("image"));
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>(random.bits());
  return image;
}

inline image::EvalTransform transform(int64_t size) {
  image::EvalTransform result;
  result.size = {size, size};
  result.crop_pct = 1;
  return result;
}

}  // namespace vitrail::data
