// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/draw.h"

#include <algorithm>
#include <cmath>

namespace vitrail::image {

PixelColor voc_color(int64_t id) {
  PixelColor color{};
  for (int bit = 0; bit < 8; ++bit) {
    for (size_t c = 0; c < 3; ++c)
      color[c] |= static_cast<uint8_t>((id >> (3 * bit + static_cast<int>(c)) & 1) << (7 - bit));
  }
  return color;
}

void fill_rectangle(const Rectangle& rectangle, const PixelColor& color, Image& image) {
  for (int64_t y = std::max<int64_t>(rectangle.top, 0); y < std::min(rectangle.bottom, image.height); ++y) {
    for (int64_t x = std::max<int64_t>(rectangle.left, 0); x < std::min(rectangle.right, image.width); ++x)
      std::ranges::copy(color, image.row(y) + 3 * x);
  }
}

void draw_rectangle(const Rectangle& rectangle, int64_t width, const PixelColor& color, Image& image) {
  const auto [left, top, right, bottom] = rectangle;
  fill_rectangle({left, top, right, std::min(top + width, bottom)}, color, image);
  fill_rectangle({left, std::max(top, bottom - width), right, bottom}, color, image);
  fill_rectangle({left, top, std::min(left + width, right), bottom}, color, image);
  fill_rectangle({std::max(left, right - width), top, right, bottom}, color, image);
}

void draw_line(const Position& from, const Position& to, double radius, const PixelColor& color, Image& image) {
  const double dx = to.x - from.x, dy = to.y - from.y, squared = dx * dx + dy * dy;
  const auto clipped = [](double position, int64_t size) {
    return static_cast<int64_t>(std::clamp(position, -1.0, static_cast<double>(size)));
  };
  const int64_t right = std::min(clipped(std::max(from.x, to.x) + radius, image.width), image.width - 1);
  const int64_t bottom = std::min(clipped(std::max(from.y, to.y) + radius, image.height), image.height - 1);
  for (int64_t y = std::max<int64_t>(clipped(std::min(from.y, to.y) - radius, image.height), 0); y <= bottom; ++y) {
    for (int64_t x = std::max<int64_t>(clipped(std::min(from.x, to.x) - radius, image.width), 0); x <= right; ++x) {
      const double px = static_cast<double>(x) - from.x, py = static_cast<double>(y) - from.y;
      const double along = squared > 0 ? std::clamp((px * dx + py * dy) / squared, 0.0, 1.0) : 0;
      if (std::hypot(px - along * dx, py - along * dy) <= radius) std::ranges::copy(color, image.row(y) + 3 * x);
    }
  }
}

}  // namespace vitrail::image
