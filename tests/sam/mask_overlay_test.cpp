// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/mask_overlay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>
#include <vector>

#include "tests/support/messages.h"

namespace vitrail::sam {
namespace {

using Pixel = std::array<uint8_t, 3>;

// A mask of columns and rows from `first` to `last` of 40 × 30 pixels.
Rle square(int64_t first, int64_t last) {
  BinaryMask mask = make_mask(40, 30);
  for (int64_t y = first; y < last; ++y) std::fill(mask.row(y) + first, mask.row(y) + last, uint8_t{1});
  return encode(mask);
}

image::Image grey_photo() {
  image::Image photo = image::make_image(40, 30, 1);
  std::ranges::fill(photo.pixels, uint8_t{100});
  return photo;
}

Pixel at(const image::Image& image, int64_t x, int64_t y) {
  const uint8_t* pixel = image.row(y) + 3 * x;
  return {pixel[0], pixel[1], pixel[2]};
}

constexpr Pixel kPhoto{100, 100, 100};

TEST(MaskOverlay, PaintsInsideAndOutlinesInFull) {
  const image::Image overlay = mask_overlay(grey_photo(), std::array{square(5, 15)}, 0.5);
  const Pixel outline = at(overlay, 5, 5), inside = at(overlay, 10, 10);
  EXPECT_EQ(at(overlay, 4, 5), kPhoto);
  EXPECT_EQ(at(overlay, 15, 14), kPhoto);
  EXPECT_EQ(at(overlay, 14, 9), outline);
  for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(inside[c], (100 + outline[c]) / 2.0, 1) << c;
}

TEST(MaskOverlay, WithoutOpacityOnlyOutlinesAreSeen) {
  const image::Image overlay = mask_overlay(grey_photo(), std::array{square(5, 15)}, 0);
  EXPECT_EQ(at(overlay, 10, 10), kPhoto);
  EXPECT_NE(at(overlay, 5, 10), kPhoto);
}

TEST(MaskOverlay, SmallerMasksAreAboveLargerOnes) {
  const std::vector<Rle> one{square(2, 28)}, both{square(10, 20), square(2, 28)};
  const image::Image overlay = mask_overlay(grey_photo(), both, 1);
  EXPECT_NE(at(overlay, 15, 15), at(overlay, 5, 5));
  const std::vector<Rle> reversed{both[1], both[0]};
  EXPECT_EQ(at(mask_overlay(grey_photo(), reversed, 1), 5, 5), at(mask_overlay(grey_photo(), one, 1), 5, 5));
}

TEST(MaskOverlay, ColoursDiffer) {
  std::set<Pixel> colors;
  std::vector<Rle> masks;
  for (int64_t i = 0; i < 15; ++i) masks.push_back(square(i, i + 1));
  const image::Image overlay = mask_overlay(grey_photo(), masks, 1);
  for (int64_t i = 0; i < 15; ++i) colors.insert(at(overlay, i, i));
  EXPECT_EQ(colors.size(), 15u);
}

TEST(MaskOverlay, MasksHaveTheSizeOfTheImage) {
  const std::string message =
      testing::error_of([&] { mask_overlay(grey_photo(), std::array{encode(make_mask(30, 40))}, 0.5); });
  EXPECT_TRUE(testing::contains(message, "40×30, got 30×40")) << message;
}

// The hues 0, 0.618…, 0.236… and 0.854… of a circle, of 255 and 200 in turn, with 0.15 of it in the weakest channel.
TEST(MaskOverlay, HasTheColoursOfItsHues) {
  std::vector<Rle> masks;
  for (int64_t i = 0; i < 4; ++i) masks.push_back(square(5 * i, 5 * i + 5));
  const image::Image full = mask_overlay(grey_photo(), masks, 1), part = mask_overlay(grey_photo(), masks, 0.25);
  const Pixel colors[] = {{255, 38, 38}, {30, 80, 200}, {165, 255, 38}, {200, 30, 179}};
  const Pixel parts[] = {{139, 85, 85}, {83, 95, 125}, {116, 139, 85}, {125, 83, 120}};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(at(full, 5 * i + 2, 5 * i + 2), colors[i]) << i;
    EXPECT_EQ(at(part, 5 * i, 5 * i + 4), colors[i]) << "the outline of " << i;
    EXPECT_EQ(at(part, 5 * i + 2, 5 * i + 2), parts[i]) << i;
  }
  EXPECT_EQ(full.channels, 3);
  EXPECT_EQ(mask_overlay(grey_photo(), masks).pixels, mask_overlay(grey_photo(), masks, 0.5).pixels);
}

TEST(MaskOverlay, TheLaterOfEqualMasksIsAbove) {
  const std::vector<Rle> masks{square(2, 12), square(6, 16)};
  const image::Image overlay = mask_overlay(grey_photo(), masks, 1);
  EXPECT_EQ(at(overlay, 8, 8), at(overlay, 14, 14));
  EXPECT_NE(at(overlay, 8, 8), at(overlay, 3, 3));
}

TEST(MaskOverlay, TheBorderOfTheImageIsNoOutline) {
  BinaryMask mask = make_mask(40, 30);
  for (int64_t y = 0; y < 30; ++y) std::fill_n(mask.row(y), 40, uint8_t{1});
  mask.row(12)[20] = 0;
  const image::Image overlay = mask_overlay(grey_photo(), std::array{encode(mask)}, 0);
  for (int64_t y = 0; y < 30; ++y) {
    for (int64_t x = 0; x < 40; ++x) {
      const bool beside = std::abs(x - 20) + std::abs(y - 12) == 1;
      EXPECT_EQ(at(overlay, x, y) == kPhoto, !beside) << x << "," << y;
    }
  }
}

// An outline has a pixel for each 400 of the image's short side.
TEST(MaskOverlay, OutlinesOfLargeImagesAreWider) {
  for (const auto& [width, height, radius] :
       {std::tuple<int64_t, int64_t, int64_t>{801, 799, 1}, {799, 801, 1}, {800, 900, 2}, {1200, 1201, 3}}) {
    BinaryMask mask = make_mask(width, height);
    for (int64_t y = 0; y < height; ++y) std::fill_n(mask.row(y), 100, uint8_t{1});
    image::Image photo = image::make_image(width, height, 1);
    std::ranges::fill(photo.pixels, uint8_t{100});
    const image::Image overlay = mask_overlay(photo, std::array{encode(mask)}, 0);
    for (int64_t x = 90; x < 102; ++x) {
      EXPECT_EQ(at(overlay, x, 50) != kPhoto, x < 100 && x >= 100 - radius) << x << " of " << width << "×" << height;
    }
  }
}

}  // namespace
}  // namespace vitrail::sam
