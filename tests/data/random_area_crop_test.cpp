// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/random_area_crop.h"

#include <gtest/gtest.h>

namespace vitrail::data {
namespace {

TEST(RandomPart, IsThreeTenthsToAllOfThePicture) {
  image::Image picture = image::make_image(60, 40, 1);
  for (int64_t i = 0; i < 60 * 40; ++i) picture.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 60 + i / 60);
  RandomStream random(1);
  bool smaller = false;
  for (int draw = 0; draw < 200; ++draw) {
    const image::Image part = random_area_crop(picture, random);
    ASSERT_EQ(part.pixels.size(), static_cast<size_t>(part.width * part.height));
    // The window's sides are rounded to whole pixels: half a row and half a column of it.
    EXPECT_GE(part.width * part.height, 0.3 * 60 * 40 - 0.5 * (part.width + part.height + 1));
    EXPECT_LE(part.width, 60);
    EXPECT_LE(part.height, 40);
    smaller = smaller || part.width * part.height < 0.5 * 60 * 40;
    // Cut out, not resized: neighbours differ by one as in the picture.
    if (part.width > 1) {
      EXPECT_EQ(part.pixels[1] - part.pixels[0], 1);
    }
  }
  EXPECT_TRUE(smaller);
}

TEST(RandomPart, OfASinglePixelIsThatPixel) {
  RandomStream random(1);
  const image::Image part = random_area_crop(image::make_image(1, 1, 3), random);
  EXPECT_EQ(part.width, 1);
  EXPECT_EQ(part.height, 1);
}

}  // namespace
}  // namespace vitrail::data
