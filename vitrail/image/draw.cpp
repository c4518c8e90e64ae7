// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/draw.h"

#include <algorithm>

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

}  // namespace vitrail::image
