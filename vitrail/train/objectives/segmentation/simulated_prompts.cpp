// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/simulated_prompts_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/data/augment/random_draws_internal.h"

namespace vitrail::train {
namespace {

// The position of the n-th pixel that is not 0, n from 0.
int64_t nth_pixel(const sam::BinaryMask& mask, int64_t n) {
  for (size_t i = 0; i < mask.pixels.size(); ++i) {
    if (mask.pixels[i] != 0 && n-- == 0) return static_cast<int64_t>(i);
  }
  return 0;
}

int64_t random_pixel(const sam::BinaryMask& mask, RandomStream& random) {
  return nth_pixel(mask, data::random_index(random, sam::area(mask)));
}

}  // namespace

sam::Point click_in(const sam::BinaryMask& mask, int label, RandomStream& random) {
  const int64_t at = random_pixel(mask, random);
  return {static_cast<double>(at % mask.width), static_cast<double>(at / mask.width), label};
}

sam::Box jittered_box(const sam::BinaryMask& mask, RandomStream& random) {
  constexpr double kDeviation = 0.1, kMaxPixels = 20, kOfSide = 1024;
  const sam::PixelBox box = sam::bounding_box(mask);
  const double limit = kMaxPixels / kOfSide * static_cast<double>(std::max(mask.width, mask.height));
  const auto jittered = [&](int64_t edge, int64_t length, int64_t frame) {
    const double noise = std::clamp(random.normal() * kDeviation * static_cast<double>(length), -limit, limit);
    return std::clamp(static_cast<double>(edge) + noise, 0.0, static_cast<double>(frame));
  };
  const int64_t width = box.x1 + 1 - box.x0, height = box.y1 + 1 - box.y0;
  sam::Box result{jittered(box.x0, width, mask.width), jittered(box.y0, height, mask.height),
                  jittered(box.x1 + 1, width, mask.width), jittered(box.y1 + 1, height, mask.height)};
  const bool has_area = result.x0 < result.x1 && result.y0 < result.y1;
  if (has_area) return result;
  return {static_cast<double>(box.x0), static_cast<double>(box.y0), static_cast<double>(box.x1 + 1),
          static_cast<double>(box.y1 + 1)};
}

std::optional<sam::Point> correction_click(const sam::BinaryMask& predicted, const sam::BinaryMask& target, double cell,
                                           RandomStream& random) {
  sam::BinaryMask wrong = sam::make_mask(target.width, target.height);
  for (size_t i = 0; i < wrong.pixels.size(); ++i) wrong.pixels[i] = predicted.pixels[i] != target.pixels[i];
  if (sam::area(wrong) == 0) return std::nullopt;
  const int64_t at = random_pixel(wrong, random);
  const double x = (static_cast<double>(at % target.width) + random.uniform()) * cell;
  const double y = (static_cast<double>(at / target.width) + random.uniform()) * cell;
  return sam::Point{std::floor(x), std::floor(y), target.pixels[static_cast<size_t>(at)] != 0 ? 1 : 0};
}

}  // namespace vitrail::train
