// SPDX-License-Identifier: Apache-2.0
#include "vitrail/anomaly/rotation.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vitrail::anomaly {
namespace {

image::Image noise(int64_t width, int64_t height) {
  image::Image image = image::make_image(width, height, 3);
  uint32_t state = 1;
  for (uint8_t& value : image.pixels) value = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  return image;
}

TEST(Rotation, OfASquareByARightAngleMovesPixels) {
  const image::Image image = noise(6, 6), turned = rotated(image, 90);
  for (int64_t y = 0; y < 6; ++y)
    for (int64_t i = 0; i < 18; ++i) EXPECT_EQ(turned.row(y)[i], image.row(i / 3)[(5 - y) * 3 + i % 3]);
  EXPECT_EQ(rotated(image, 0).pixels, image.pixels);
}

// In OpenCV's notation of borders: gfedcb|abcdefgh|gfedcba.
TEST(Rotation, MirrorsTheImageBeyondItsEdges) {
  const image::Image image = noise(5, 3), turned = rotated(image, 90);
  const int64_t columns[]{1, 0, 1, 2, 1};  // rows of the image at −1, 0, 1, 2, 3
  for (int64_t y = 0; y < 3; ++y)
    for (int64_t x = 0; x < 5; ++x) EXPECT_EQ(turned.row(y)[3 * x], image.row(columns[x])[3 * (3 - y)]);
}

TEST(Rotation, IsLinearBetweenPixels) {
  image::Image ramp = image::make_image(21, 21, 1);
  for (int64_t y = 0; y < 21; ++y)
    for (int64_t x = 0; x < 21; ++x) ramp.row(y)[x] = static_cast<uint8_t>(5 * x + 2 * y);
  const image::Image turned = rotated(ramp, 30);
  for (int64_t y = 7; y < 14; ++y) {
    for (int64_t x = 7; x < 14; ++x) {
      const double dx = static_cast<double>(x - 10), dy = static_cast<double>(y - 10);
      const double column = 0.8660254 * dx - 0.5 * dy + 10, row = 0.5 * dx + 0.8660254 * dy + 10;
      EXPECT_NEAR(turned.row(y)[x], 5 * column + 2 * row, 0.51);
    }
  }
}

}  // namespace
}  // namespace vitrail::anomaly
