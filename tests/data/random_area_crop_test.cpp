// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/augment/random_area_crop.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace vitrail::data {
namespace {

TEST(RandomAreaCrop, Covers30To100PercentOfTheArea) {
  image::Image image = image::make_image(60, 40, 1);
  for (int64_t i = 0; i < 60 * 40; ++i) image.pixels[static_cast<size_t>(i)] = static_cast<uint8_t>(i % 60 + i / 60);
  RandomStream random(1);
  bool smaller = false;
  for (int draw = 0; draw < 200; ++draw) {
    const image::Image crop = random_area_crop(image, random);
    ASSERT_EQ(crop.pixels.size(), static_cast<size_t>(crop.width * crop.height));
    // Rounding the sides to pixels costs up to half a row and half a column.
    EXPECT_GE(crop.width * crop.height, 0.3 * 60 * 40 - 0.5 * (crop.width + crop.height + 1));
    EXPECT_LE(crop.width, 60);
    EXPECT_LE(crop.height, 40);
    smaller = smaller || crop.width * crop.height < 0.5 * 60 * 40;
    // Cropped, not resized: adjacent pixels differ by one as in the image.
    if (crop.width > 1) {
      EXPECT_EQ(crop.pixels[1] - crop.pixels[0], 1);
    }
  }
  EXPECT_TRUE(smaller);
}

TEST(RandomAreaCrop, OfASinglePixelIsThatPixel) {
  RandomStream random(1);
  const image::Image crop = random_area_crop(image::make_image(1, 1, 3), random);
  EXPECT_EQ(crop.width, 1);
  EXPECT_EQ(crop.height, 1);
}

TEST(RandomAreaCrop, ReachesTheMinAndTheWholeArea) {
  const image::Image image = image::make_image(60, 40, 3);
  RandomStream random(3);
  double min_area = 1, max_area = 0;
  for (int draw = 0; draw < 500; ++draw) {
    const image::Image crop = random_area_crop(image, random);
    EXPECT_EQ(crop.channels, 3);
    const double area = static_cast<double>(crop.width * crop.height) / (60 * 40);
    min_area = std::min(min_area, area), max_area = std::max(max_area, area);
  }
  EXPECT_GT(min_area, 0.28);
  EXPECT_LT(min_area, 0.34);
  EXPECT_GT(max_area, 0.86) << "of 8 / 9, the largest window of the ratio 4 / 3 in one of 3 / 2";
}

}  // namespace
}  // namespace vitrail::data
