// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/image_input_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/models/sam/config.h"

namespace vitrail::sam {

std::array<int64_t, 2> resized_sides(int64_t height, int64_t width, int64_t size) {
  const double scale = static_cast<double>(size) / static_cast<double>(std::max(height, width));
  auto side = [scale](int64_t n) { return static_cast<int64_t>(static_cast<double>(n) * scale + 0.5); };
  return {side(height), side(width)};
}

image::Image resized_image(const image::ImageView& view, int64_t size) {
  const auto [height, width] = resized_sides(view.height(), view.width(), size);
  if (height < 1 || width < 1) {
    throw Error("image", str("sides that are at least 1 pixel when the long one is resized to ", size),
                str(view.width(), "×", view.height()));
  }
  const bool is_rgb = view.format() == image::PixelFormat::rgb;
  return is_rgb ? image::resize(view, width, height, image::Filter::bilinear)
                : image::resize(image::to_image(view, image::ColorMode::rgb), width, height, image::Filter::bilinear);
}

void write_input(const image::Image& resized, int64_t size, float* input) {
  std::fill_n(input, 3 * size * size, 0.0f);
  for (int64_t c = 0; c < 3; ++c) {
    for (int64_t y = 0; y < resized.height; ++y) {
      const uint8_t* const row = resized.row(y) + c;
      float* const to = input + (c * size + y) * size;
      for (int64_t x = 0; x < resized.width; ++x) {
        to[x] = (static_cast<float>(row[3 * x]) - models::kSamImageMean[c]) / models::kSamImageStd[c];
      }
    }
  }
}

}  // namespace vitrail::sam
