// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/color_internal.h"

#include <algorithm>
#include <cmath>

namespace vitrail::image {
namespace {

// The inverse of CIE L*a*b*'s cube root with its linear part (CIE 15:2004, appendix D).
double uncompressed(double t) {
  constexpr double kLimit = 6.0 / 29;
  return t > kLimit ? t * t * t : 3 * kLimit * kLimit * (t - 4.0 / 29);
}

// IEC 61966-2-1's transfer function, in a byte.
uint8_t srgb_byte(double linear) {
  linear = std::clamp(linear, 0.0, 1.0);
  const double value = linear <= 0.0031308 ? 12.92 * linear : 1.055 * std::pow(linear, 1 / 2.4) - 0.055;
  return static_cast<uint8_t>(std::lround(255 * value));
}

}  // namespace

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

void cielab_to_rgb(const uint8_t* lab, int64_t pixels, uint8_t* rgb) {
  constexpr double kWhite[3] = {0.9642, 1, 0.8249};  // D50
  // XYZ of D50 to linear sRGB: sRGB's primaries adapted from D65 by Bradford's matrix.
  constexpr double kToRgb[3][3] = {
      {3.1338561, -1.6168667, -0.4906146}, {-0.9787684, 1.9161415, 0.0334540}, {0.0719453, -0.2289914, 1.4052427}};
  for (int64_t i = 0; i < pixels; ++i, lab += 3, rgb += 3) {
    const double y = (lab[0] / 2.55 + 16) / 116;
    const double x = y + static_cast<int8_t>(lab[1]) / 500.0, z = y - static_cast<int8_t>(lab[2]) / 200.0;
    const double xyz[3] = {kWhite[0] * uncompressed(x), kWhite[1] * uncompressed(y), kWhite[2] * uncompressed(z)};
    for (size_t c = 0; c < 3; ++c) {
      rgb[c] = srgb_byte(kToRgb[c][0] * xyz[0] + kToRgb[c][1] * xyz[1] + kToRgb[c][2] * xyz[2]);
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
