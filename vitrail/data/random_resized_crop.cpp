// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/random_resized_crop_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/data/auto_augment_policies_internal.h"

namespace vitrail::data {
namespace {

constexpr int kTries = 10;  // of both references

double between(RandomStream& random, double low, double high) { return low + (high - low) * random.uniform(); }

// Python's int(round(x)): halves go to the even neighbour.
int64_t rounded(double x) { return static_cast<int64_t>(std::nearbyint(x)); }

image::Window middle(int64_t width, int64_t height, int64_t of_width, int64_t of_height) {
  return {(of_width - width) / 2, (of_height - height) / 2, width, height};
}

}  // namespace

image::Window resized_crop_window(const RandomResizedCrop& options, int64_t width, int64_t height,
                                  RandomStream& random) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * between(random, options.scale[0], options.scale[1]);
    const double ratio = std::exp(between(random, low, high));
    const int64_t w = rounded(std::sqrt(target * ratio)), h = rounded(std::sqrt(target / ratio));
    if (w <= 0 || w > width || h <= 0 || h > height) continue;
    const int64_t top = below(random, height - h + 1), left = below(random, width - w + 1);
    return {left, top, w, h};
  }
  const double ratio = static_cast<double>(width) / static_cast<double>(height);
  int64_t w = width, h = height;
  if (ratio < options.ratio[0]) h = rounded(static_cast<double>(width) / options.ratio[0]);
  if (ratio > options.ratio[1]) w = rounded(static_cast<double>(height) * options.ratio[1]);
  return middle(std::clamp<int64_t>(w, 1, width), std::clamp<int64_t>(h, 1, height), width, height);
}

image::Window erased_window(const RandomErasing& options, double share, int64_t width, int64_t height,
                            RandomStream& random) {
  const double area = static_cast<double>(width) * static_cast<double>(height);
  const double low = std::log(options.ratio[0]), high = std::log(options.ratio[1]);
  for (int i = 0; i < kTries; ++i) {
    const double target = between(random, options.area[0], options.area[1]) * area * share;
    const double ratio = std::exp(between(random, low, high));
    const int64_t h = rounded(std::sqrt(target * ratio)), w = rounded(std::sqrt(target / ratio));
    if (w >= width || h >= height) continue;
    const int64_t top = below(random, height - h + 1), left = below(random, width - w + 1);
    return {left, top, w, h};
  }
  return {};
}

void erase(const RandomErasing& options, int64_t channels, int64_t height, int64_t width, RandomStream& random,
           float* picture) {
  if (options.probability <= 0 || random.uniform() >= options.probability) return;
  const int64_t count = options.count[0] + below(random, options.count[1] - options.count[0] + 1);
  for (int64_t i = 0; i < count; ++i) {
    const image::Window window = erased_window(options, 1.0 / static_cast<double>(count), width, height, random);
    for (int64_t c = 0; c < channels; ++c) {
      const float colour = options.mode == RandomErasing::Mode::colour ? static_cast<float>(random.normal()) : 0.0f;
      for (int64_t y = window.top; y < window.top + window.height; ++y) {
        float* row = picture + (c * height + y) * width + window.left;
        for (int64_t x = 0; x < window.width; ++x) {
          row[x] = options.mode == RandomErasing::Mode::pixel ? static_cast<float>(random.normal()) : colour;
        }
      }
    }
  }
}

}  // namespace vitrail::data
