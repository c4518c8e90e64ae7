// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/random_resized_crop_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::data {
namespace {

constexpr int kMaxCropAttempts = 10;  // as torchvision

// Python's int(round(x)): halves go to the even neighbour.
int64_t rounded_size(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

image::Window centered(int64_t width, int64_t height, int64_t image_width, int64_t image_height) {
  return {(image_width - width) / 2, (image_height - height) / 2, width, height};
}

}  // namespace

image::Window resized_crop_window(const RandomResizedCrop& options, int64_t width, int64_t height,
                                  RandomStream& random) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (int i = 0; i < kMaxCropAttempts; ++i) {
    const double target = area * random_uniform(random, options.scale[0], options.scale[1]);
    const double ratio = std::exp(random_uniform(random, low, high));
    const int64_t w = rounded_size(std::sqrt(target * ratio)), h = rounded_size(std::sqrt(target / ratio));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const int64_t top = random_index(random, height - h + 1), left = random_index(random, width - w + 1);
    return {left, top, w, h};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t w = width, h = height;
  if (ratio < options.ratio[0]) h = rounded_size(static_cast<double>(width) / options.ratio[0]);
  if (ratio > options.ratio[1]) w = rounded_size(static_cast<double>(height) * options.ratio[1]);
  return centered(std::clamp<int64_t>(w, 1, width), std::clamp<int64_t>(h, 1, height), width, height);
}

}  // namespace vitrail::data
