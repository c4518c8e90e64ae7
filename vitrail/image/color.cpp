// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/color_internal.h"

namespace vitrail::image {

void rgb_to_grey(const uint8_t* rgb, int64_t pixels, uint8_t* grey) {
  for (int64_t i = 0; i < pixels; ++i) grey[i] = luma(rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
}

void grey_to_rgb(const uint8_t* grey, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i) rgb[3 * i] = rgb[3 * i + 1] = rgb[3 * i + 2] = grey[i];
}

void inverted_cmyk_to_rgb(const uint8_t* cmyk, int64_t pixels, uint8_t* rgb) {
  for (int64_t i = 0; i < pixels; ++i) {
    const int white = cmyk[4 * i + 3];  // the inverted black channel
    for (int c = 0; c < 3; ++c) {
      const int scaled = (255 - cmyk[4 * i + c]) * white + 128;  // ink · white / 255, rounded without a division
      rgb[3 * i + c] = static_cast<uint8_t>(white - (((scaled >> 8) + scaled) >> 8));
    }
  }
}

Image from_palette(std::span<const uint8_t> indices, int64_t width, int64_t height, const Palette& palette,
                   ColorMode mode) {
  Image image = make_image(width, height, channels_of(mode));
  uint8_t* out = image.pixels.data();
  for (const uint8_t index : indices) {
    const auto& [red, green, blue] = palette[index];
    if (mode == ColorMode::grey) {
      *out++ = luma(red, green, blue);
    } else {
      *out++ = red, *out++ = green, *out++ = blue;
    }
  }
  return image;
}

Image to_mode(Image image, ColorMode mode) {
  if (image.channels == channels_of(mode)) return image;
  Image converted = make_image(image.width, image.height, channels_of(mode));
  const int64_t pixels = image.width * image.height;
  if (mode == ColorMode::grey) {
    rgb_to_grey(image.pixels.data(), pixels, converted.pixels.data());
  } else {
    grey_to_rgb(image.pixels.data(), pixels, converted.pixels.data());
  }
  return converted;
}

}  // namespace vitrail::image
