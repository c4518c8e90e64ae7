// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/mask_overlay.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
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

}  // namespace
}  // namespace vitrail::sam
