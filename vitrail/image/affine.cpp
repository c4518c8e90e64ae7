// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/affine_internal.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/image/affine_sampling_internal.h"

namespace vitrail::image {
namespace {

Image filled(const Image& like, const Fill& fill) {
  Image image = make_image(like.width, like.height, like.channels);
  if (fill == Fill{}) return image;
  if (like.channels == 1) {
    std::fill(image.pixels.begin(), image.pixels.end(), fill[0]);
  } else {
    for (size_t i = 0; i < image.pixels.size(); i += 3) std::memcpy(&image.pixels[i], fill.data(), 3);
  }
  return image;
}

double radians(double degrees) { return degrees * (std::numbers::pi / 180.0); }

// Python's round(x, 15), which Pillow applies to sines and cosines.
double rounded(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.15f", x);
  return std::strtod(text, nullptr);
}

Image rotate_180(const Image& source) {
  Image result = make_image(source.width, source.height, source.channels);
  const int64_t pixels = source.width * source.height, channels = source.channels;
  for (int64_t i = 0; i < pixels; ++i) {
    std::memcpy(&result.pixels[(pixels - 1 - i) * channels], &source.pixels[i * channels],
                static_cast<size_t>(channels));
  }
  return result;
}

// Rotates a square by 90°, clockwise or counter-clockwise.
Image rotate_90(const Image& source, bool clockwise) {
  Image result = make_image(source.width, source.height, source.channels);
  const int64_t last = source.width - 1, channels = source.channels;
  for (int64_t y = 0; y <= last; ++y) {
    for (int64_t x = 0; x <= last; ++x) {
      const uint8_t* from = clockwise ? source.row(last - x) + y * channels : source.row(x) + (last - y) * channels;
      std::memcpy(result.row(y) + x * channels, from, static_cast<size_t>(channels));
    }
  }
  return result;
}

}  // namespace

AffineMatrix affine_matrix(const AffineParts& parts, int64_t width, int64_t height) {
  const double center_x = static_cast<double>(width) * 0.5, center_y = static_cast<double>(height) * 0.5;
  const double sine = std::sin(radians(parts.degrees)), cosine = std::cos(radians(parts.degrees));
  AffineMatrix m{cosine / parts.scale, sine / parts.scale, 0, -sine / parts.scale, cosine / parts.scale, 0};
  const double x = -center_x - parts.shift_x, y = -center_y - parts.shift_y;
  m[2] = m[0] * x + m[1] * y + center_x;
  m[5] = m[3] * x + m[4] * y + center_y;
  return m;
}

Image affine(const Image& source, const AffineMatrix& matrix, Filter filter, const Fill& fill) {
  check_image(source, "affine");
  Image result = filled(source, fill);
  switch (filter) {
    case Filter::nearest:
      sample_nearest(source, matrix, result);
      break;
    case Filter::bilinear:
      sample_bilinear(source, matrix, result);
      break;
    case Filter::bicubic:
      sample_bicubic(source, matrix, result);
      break;
    default:
      throw Error("affine", "the filter nearest, bilinear or bicubic", name_of(filter));
  }
  return result;
}

Image rotate(const Image& source, double degrees, Filter filter, const Fill& fill) {
  check_image(source, "rotate");
  double angle = std::fmod(degrees, 360.0);
  if (angle < 0) angle += 360.0;
  const bool square = source.width == source.height;
  if (angle == 0) return source;
  if (angle == 180) return rotate_180(source);
  if (angle == 90 && square) return rotate_90(source, false);
  if (angle == 270 && square) return rotate_90(source, true);
  const double theta = -radians(angle);
  const double center_x = static_cast<double>(source.width) / 2, center_y = static_cast<double>(source.height) / 2;
  AffineMatrix m{rounded(std::cos(theta)),  rounded(std::sin(theta)), 0,
                 rounded(-std::sin(theta)), rounded(std::cos(theta)), 0};
  m[2] = m[0] * -center_x + m[1] * -center_y + center_x;
  m[5] = m[3] * -center_x + m[4] * -center_y + center_y;
  return affine(source, m, filter, fill);
}

}  // namespace vitrail::image
