// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/mask_overlay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/image/image_view.h"

namespace vitrail::sam {
namespace {

using Color = std::array<double, 3>;

// Hues a golden angle apart, so that those of any first n masks are far from each other; the lightness alternates.
Color color_of(size_t index) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  double whole = 0;
  const double hue = 6 * std::modf(static_cast<double>(index) * kGoldenRatio, &whole);
  const double value = index % 2 == 0 ? 255 : 200;
  const auto channel = [&](double offset) {
    const double at = std::fmod(hue + offset, 6.0);
    return value * (1 - 0.85 * std::clamp(std::min(at, 4 - at), 0.0, 1.0));
  };
  return {channel(5), channel(3), channel(1)};
}

// Whether a pixel of the mask is within `radius` rows or columns of one outside it.  The image's border is no outline.
bool on_outline(const BinaryMask& mask, int64_t x, int64_t y, int64_t radius) {
  for (int64_t step = 1; step <= radius; ++step) {
    const bool inside =
        (x < step || mask.row(y)[x - step] != 0) && (x + step >= mask.width || mask.row(y)[x + step] != 0) &&
        (y < step || mask.row(y - step)[x] != 0) && (y + step >= mask.height || mask.row(y + step)[x] != 0);
    if (!inside) return true;
  }
  return false;
}

void paint(const BinaryMask& mask, const Color& color, double opacity, image::Image& target) {
  const int64_t radius = std::max<int64_t>(1, std::min(mask.width, mask.height) / 400);
  for (int64_t y = 0; y < mask.height; ++y) {
    const uint8_t* const row = mask.row(y);
    uint8_t* pixel = target.row(y);
    for (int64_t x = 0; x < mask.width; ++x, pixel += 3) {
      if (row[x] == 0) continue;
      const double weight = on_outline(mask, x, y, radius) ? 1 : opacity;
      for (size_t c = 0; c < 3; ++c) {
        pixel[c] = static_cast<uint8_t>(std::lround((1 - weight) * pixel[c] + weight * color[c]));
      }
    }
  }
}

}  // namespace

image::Image mask_overlay(const image::Image& image, std::span<const Rle> masks, double opacity) {
  for (const Rle& mask : masks) {
    if (mask.width == image.width && mask.height == image.height) continue;
    throw Error("mask", str("the image's size ", image.width, "×", image.height), str(mask.width, "×", mask.height));
  }
  std::vector<int64_t> areas;
  for (const Rle& mask : masks) areas.push_back(area(mask));
  std::vector<size_t> order(masks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return areas[a] > areas[b]; });
  image::Image result = image::to_image(image, image::ColorMode::rgb);
  for (const size_t index : order) paint(decode(masks[index]), color_of(index), opacity, result);
  return result;
}

}  // namespace vitrail::sam
