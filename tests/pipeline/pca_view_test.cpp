// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/pca_view.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/support/messages.h"

namespace vitrail::pipeline {
namespace {

using Kind = analysis::Foreground::Kind;
using testing::contains;
using testing::error_of;

TEST(PcaForeground, IsNoneTheFirstComponentOrAThresholdAndItsOtherSide) {
  for (const bool invert : {false, true}) {
    const analysis::Foreground first = foreground_of({.foreground = "first", .invert = invert});
    EXPECT_EQ(first.kind, Kind::first);
    EXPECT_EQ(first.invert, invert);
    for (const auto& [name, threshold] : {std::pair("0", 0.0), std::pair("0.3", 0.3), std::pair("0.999", 0.999)}) {
      const analysis::Foreground number = foreground_of({.foreground = name, .invert = invert});
      EXPECT_EQ(number.kind, Kind::threshold) << name;
      EXPECT_EQ(number.threshold, threshold);
      EXPECT_EQ(number.invert, invert) << name;
    }
  }
  EXPECT_EQ(foreground_of({}).kind, Kind::all);
  EXPECT_TRUE(contains(error_of([] { foreground_of({.invert = true}); }), "invert: expected foreground first"));
  for (const char* name : {"", "1", "1.5", "-0.1", "0.5x", "x", "nan", "all"}) {
    const std::string message = error_of([&] { foreground_of({.foreground = name}); });
    EXPECT_TRUE(contains(message, "foreground: expected none, first or a number from 0 to 1")) << message;
  }
}

// Four patches of a photograph of the input's size, the left ones of a colour each, the right ones background.
TEST(PcaOverlay, ShowsTheColorsOfItsPatchesAndThePhotographPaleBehind) {
  const float none = std::numeric_limits<float>::quiet_NaN();
  analysis::PcaMaps maps{Tensor::zeros({2, 2, 3}), Tensor::zeros({2, 2, 3})};
  for (const int64_t patch : {1, 3}) {
    for (int64_t i = 0; i < 3; ++i) maps.scores.data<float>()[3 * patch + i] = none;
  }
  maps.colors.data<float>()[0] = 1;          // the upper left patch: red
  maps.colors.data<float>()[2 * 3 + 2] = 1;  // the lower left one: blue
  image::Image photo = image::make_image(32, 32, 3);
  std::fill(photo.pixels.begin(), photo.pixels.end(), uint8_t{80});
  image::EvalTransform transform;
  transform.size = {32, 32};
  transform.crop_pct = 1;
  const auto pixel = [&](const image::Image& image, int64_t x, int64_t y) {
    const uint8_t* p = image.row(y) + 3 * x;
    return std::array<int, 3>{p[0], p[1], p[2]};
  };
  const image::Image opaque = pca_overlay(photo, maps, 1, transform), half = pca_overlay(photo, maps, 0.5, transform);
  EXPECT_EQ(pixel(opaque, 2, 2), (std::array{255, 0, 0}));
  EXPECT_EQ(pixel(opaque, 2, 29), (std::array{0, 0, 255}));
  EXPECT_EQ(pixel(half, 2, 29), (std::array{40, 40, 168}));
  const std::array<int, 3> pale = pixel(opaque, 29, 2);
  EXPECT_EQ(pale[0], pale[2]);  // grey as the photograph
  EXPECT_GT(pale[0], 80);
  EXPECT_EQ(pixel(half, 29, 29), pale);
}

}  // namespace
}  // namespace vitrail::pipeline
