// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/random_erasing_internal.h"

#include <cmath>

#include "vitrail/data/augment/random_draws_internal.h"
#include "vitrail/image/resize_internal.h"

namespace vitrail::data {
namespace {

constexpr int kMaxAttempts = 10;  // as timm

// Python's int(round(x)): halves go to the even neighbour.
int64_t rounded(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

// A rectangle, or an empty one if no attempt fits.  `area_factor`: 1 / number of rectangles.
image::Window random_rectangle(const RandomErasing& options, double area_factor, int64_t width, int64_t height,
                               RandomStream& random) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (int i = 0; i < kMaxAttempts; ++i) {
    const double target = random_uniform(random, options.area[0], options.area[1]) * area * area_factor;
    const double ratio = std::exp(random_uniform(random, low, high));
    const int64_t h = rounded(std::sqrt(target * ratio)), w = rounded(std::sqrt(target / ratio));
    if (w >= width || h >= height) continue;
    const int64_t top = random_index(random, height - h + 1), left = random_index(random, width - w + 1);
    return {left, top, w, h};
  }
  return {};
}

}  // namespace

void erase(const RandomErasing& options, int64_t channels, int64_t height, int64_t width, RandomStream& random,
           float* image) {
  if (options.probability <= 0 || random.uniform() >= options.probability) return;
  const int64_t count = random_integer(random, options.count[0], options.count[1]);
  for (int64_t i = 0; i < count; ++i) {
    const image::Window window = random_rectangle(options, 1.0 / static_cast<double>(count), width, height, random);
    for (int64_t c = 0; c < channels; ++c) {
      const float colour = options.mode == RandomErasing::Mode::colour ? static_cast<float>(random.normal()) : 0.0f;
      for (int64_t y = window.top; y < window.top + window.height; ++y) {
        float* row = image + (c * height + y) * width + window.left;
        for (int64_t x = 0; x < window.width; ++x) {
          row[x] = options.mode == RandomErasing::Mode::pixel ? static_cast<float>(random.normal()) : colour;
        }
      }
    }
  }
}

}  // namespace vitrail::data
