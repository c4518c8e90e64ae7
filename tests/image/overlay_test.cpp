// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/overlay.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/colormap_internal.h"

namespace vitrail::image {
namespace {

using testing::error_of;

std::array<uint8_t, 3> pixel(const Image& image, int64_t x, int64_t y) {
  const uint8_t* at = image.row(y) + 3 * x;
  return {at[0], at[1], at[2]};
}

// CIE 1976 lightness of an sRGB colour, an independent measure (the table uses OKLab).
double lightness(const std::array<uint8_t, 3>& color) {
  const auto linear = [](double x) { return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4); };
  const double y =
      0.2126 * linear(color[0] / 255.0) + 0.7152 * linear(color[1] / 255.0) + 0.0722 * linear(color[2] / 255.0);
  return y > 0.008856 ? 116 * std::cbrt(y) - 16 : 903.3 * y;
}

// OKLab and CIE lightness agree only roughly, hence the wide tolerance.
TEST(HeatColors, LightnessIncreasesEvenly) {
  const auto& colors = heat_colors();
  const double total = lightness(colors[255]) - lightness(colors[0]);
  EXPECT_GT(total, 75);
  for (int i = 0; i + 15 < 256; i += 15) {
    const double step = (lightness(colors[i + 15]) - lightness(colors[i])) / (total / 17);
    EXPECT_GT(step, 0.6) << i;
    EXPECT_LT(step, 1.5) << i;
  }
}

// OKLab of sRGB, by the matrices of its paper from linear colours: lightness and hue in degrees.
std::array<double, 2> lightness_and_hue(const std::array<uint8_t, 3>& color) {
  std::array<double, 3> rgb;
  for (size_t i = 0; i < 3; ++i) {
    const double x = color[i] / 255.0;
    rgb[i] = x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
  }
  const double l = std::cbrt(0.4122214708 * rgb[0] + 0.5363325363 * rgb[1] + 0.0514459929 * rgb[2]),
               m = std::cbrt(0.2119034982 * rgb[0] + 0.6806995451 * rgb[1] + 0.1073969566 * rgb[2]),
               s = std::cbrt(0.0883024619 * rgb[0] + 0.2817188376 * rgb[1] + 0.6299787005 * rgb[2]);
  const double a = 1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
               b = 0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s;
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s, std::atan2(b, a) * 180 / std::acos(-1.0)};
}

// From violet over red to yellow; the bytes of dark colours leave some degrees open.
TEST(HeatColors, GoFromVioletOverRedToYellow) {
  for (int i = 0; i < 256; ++i) {
    const double t = i / 255.0;
    const auto [light, hue] = lightness_and_hue(heat_colors()[static_cast<size_t>(i)]);
    EXPECT_NEAR(light, 0.20 + 0.75 * t, 0.01) << i;
    EXPECT_NEAR(std::remainder(hue - (300 + 165 * t), 360), 0, 3) << i;
  }
}

TEST(Overlay, MinimumIsDarkestMaximumLightest) {
  const Image image = make_image(40, 20, 3);
  const std::vector<float> values{0, 1, 2, 3};
  OverlayOptions options;
  options.opacity = 1;
  const Image result = overlay(image, {values, 4, 1}, options);
  EXPECT_EQ(pixel(result, 0, 0), heat_colors()[0]);
  EXPECT_EQ(pixel(result, 39, 19), heat_colors()[255]);
  // Pixel 17 is at a quarter of the distance from the centre of cell 1 to that of cell 2.
  EXPECT_EQ(pixel(result, 17, 10), heat_colors()[std::lround(255 * 1.25 / 3)]);
}

// Cells of 20 pixels; what is not shown is pale, and its colour does not bleed into its neighbour.
TEST(Overlay, ColoursOfPatchesAreOverTheImage) {
  Image image = make_image(40, 20, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{60});
  const std::vector<float> colors{1, 0.5, 0, 0, 0, 1}, both{1, 1}, first{1, 0};
  const auto drawn = [&](const std::vector<float>& shown, double opacity) {
    return overlay(image, ColorMap{colors, shown, 2, 1}, {.opacity = opacity});
  };
  EXPECT_EQ(pixel(drawn(both, 1), 0, 0), (std::array<uint8_t, 3>{255, 128, 0}));
  EXPECT_EQ(pixel(drawn(both, 1), 39, 19), (std::array<uint8_t, 3>{0, 0, 255}));
  EXPECT_EQ(pixel(drawn(both, 0.5), 0, 0), (std::array<uint8_t, 3>{158, 94, 30}));
  EXPECT_EQ(pixel(drawn(both, 0), 39, 19), (std::array<uint8_t, 3>{60, 60, 60}));
  EXPECT_EQ(pixel(drawn(first, 1), 39, 19), (std::array<uint8_t, 3>{190, 190, 190}));
  EXPECT_EQ(pixel(drawn(first, 1), 0, 0), (std::array<uint8_t, 3>{255, 128, 0}));
  const auto between = pixel(drawn(first, 1), 20, 10);  // 0.475 of the first cell, 0.525 of the background
  EXPECT_EQ(between[2], std::lround(190 * 0.525));
  EXPECT_THROW(overlay(image, ColorMap{colors, both, 1, 1}, {}), Error);
  EXPECT_THROW(overlay(image, ColorMap{both, both, 2, 1}, {}), Error);
}

TEST(Overlay, OpacityBlendsWithTheImage) {
  Image image = make_image(2, 2, 1);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{200});
  const std::vector<float> values{5};
  OverlayOptions options;
  options.opacity = 0;
  EXPECT_EQ(pixel(overlay(image, {values, 1, 1}, options), 1, 1), (std::array<uint8_t, 3>{200, 200, 200}));
  options.opacity = 0.5;
  const auto dark = heat_colors()[0];  // a constant map
  EXPECT_EQ(pixel(overlay(image, {values, 1, 1}, options), 0, 0)[0], std::lround(100 + dark[0] * 0.5));
  options.low = 0, options.high = 5, options.opacity = 1;
  EXPECT_EQ(pixel(overlay(image, {values, 1, 1}, options), 0, 0), heat_colors()[255]);
}

TEST(Overlay, InvalidMapsAreErrors) {
  const Image image = make_image(4, 4, 3);
  const std::vector<float> values{0, 1, 2, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THROW(overlay(image, {values, 2, 2}), Error);
  EXPECT_THROW(overlay(image, {std::span(values).first(3), 2, 2}), Error);
  EXPECT_THROW(overlay(image, {{}, 0, 0}), Error);
  EXPECT_THROW(overlay(Image{}, {std::span(values).first(1), 1, 1}), Error);
}

TEST(Overlay, CoversARegionAndMakesTheRestPale) {
  Image image = make_image(8, 4, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{90});
  const std::vector<float> values{0, 1};
  const Image result = overlay(image, {values, 2, 1}, {.opacity = 1, .region = Region{2, 1, 6, 4}});
  EXPECT_EQ(pixel(result, 2, 1), heat_colors()[0]);
  EXPECT_EQ(pixel(result, 5, 3), heat_colors()[255]);
  for (const auto& [x, y] : std::vector<std::array<int64_t, 2>>{{1, 2}, {6, 2}, {3, 0}}) {
    EXPECT_EQ(pixel(result, x, y), (std::array<uint8_t, 3>{200, 200, 200})) << x << " " << y;
  }
}

TEST(ColorBar, HasTheHighestValueAtTheTop) {
  const Image bar = color_bar(2, 256);
  EXPECT_EQ(pixel(bar, 1, 0), heat_colors()[255]);
  EXPECT_EQ(pixel(bar, 0, 255), heat_colors()[0]);
}

TEST(Paste, CutsOffWhatIsOutsideTheTarget) {
  Image target = make_image(4, 3, 3), patch = make_image(2, 2, 1);
  std::fill(patch.pixels.begin(), patch.pixels.end(), uint8_t{7});
  paste(patch, 3, -1, target);
  EXPECT_EQ(pixel(target, 3, 0)[0], 7);
  EXPECT_EQ(std::count(target.pixels.begin(), target.pixels.end(), 7), 3);
  paste(patch, 9, 9, target);
  EXPECT_EQ(std::count(target.pixels.begin(), target.pixels.end(), 7), 3);
}

TEST(Grid, ArrangesImagesInRowsWithGaps) {
  std::vector<Image> images(5, make_image(3, 2, 1));
  for (size_t i = 0; i < images.size(); ++i) std::fill(images[i].pixels.begin(), images[i].pixels.end(), i);
  const Image result = grid(images, 0, 1);
  EXPECT_EQ(result.width, 3 * 4 - 1);
  EXPECT_EQ(result.height, 2 * 3 - 1);
  EXPECT_EQ(pixel(result, 0, 0)[0], 0);
  EXPECT_EQ(pixel(result, 3, 0)[0], 255);  // a gap
  EXPECT_EQ(pixel(result, 8, 1)[2], 2);
  EXPECT_EQ(pixel(result, 4, 4)[1], 4);
  EXPECT_EQ(pixel(result, 9, 4)[0], 255);  // an empty cell
  images[1] = make_image(2, 2, 1);
  EXPECT_THROW(grid(images), Error);
  EXPECT_THROW(grid({}), Error);
}

std::vector<Image> shades(size_t count, int64_t width, int64_t height) {
  std::vector<Image> images;
  for (size_t i = 0; i < count; ++i) {
    images.push_back(make_image(width, height, 3));
    std::fill(images.back().pixels.begin(), images.back().pixels.end(), static_cast<uint8_t>(i + 1));
  }
  return images;
}

TEST(Grid, HasEachImageAtItsPlace) {
  for (size_t count = 1; count <= 7; ++count) {
    for (int64_t columns = 0; columns <= 9; ++columns) {
      const std::vector<Image> images = shades(count, 3, 2);
      const Image all = grid(images, columns, 1);
      const auto square = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
      const int64_t used = std::min<int64_t>(columns == 0 ? square : columns, static_cast<int64_t>(count));
      const int64_t rows = static_cast<int64_t>(std::ceil(static_cast<double>(count) / static_cast<double>(used)));
      ASSERT_EQ(all.width, 4 * used - 1) << count << " " << columns;
      ASSERT_EQ(all.height, 3 * rows - 1) << count << " " << columns;
      for (int64_t y = 0; y < all.height; ++y) {
        for (int64_t x = 0; x < all.width; ++x) {
          const int64_t i = y / 3 * used + x / 4;
          const bool gap = x % 4 == 3 || y % 3 == 2 || i >= static_cast<int64_t>(count);
          ASSERT_EQ(pixel(all, x, y)[1], gap ? 255 : i + 1) << x << " " << y;
        }
      }
    }
  }
}

TEST(Overlay, ARegionBeyondTheImageShowsAPartOfTheMap) {
  const Image image = make_image(4, 4, 3);
  const std::vector<float> values{0, 1, 2, 3};
  const Image whole = overlay(make_image(8, 8, 3), {values, 2, 2}, {.opacity = 1});
  const Image part = overlay(image, {values, 2, 2}, {.opacity = 1, .region = Region{-4, -4, 4, 4}});
  for (int64_t y = 0; y < 4; ++y) {
    for (int64_t x = 0; x < 4; ++x) EXPECT_EQ(pixel(part, x, y), pixel(whole, x + 4, y + 4)) << x << " " << y;
  }
  EXPECT_THROW(overlay(image, {values, 2, 2}, {.region = Region{2, 0, 2, 4}}), Error);
  EXPECT_THROW(overlay(image, {values, 2, 2}, {.region = Region{0, 3, 4, 2}}), Error);
}

TEST(Overlay, ValuesBeyondTheLimitsHaveTheirColours) {
  const std::vector<float> values{-9, 9};
  const Image result = overlay(make_image(4, 1, 3), {values, 2, 1}, {.opacity = 7, .low = 0.0, .high = 1.0});
  EXPECT_EQ(pixel(result, 0, 0), heat_colors()[0]);
  EXPECT_EQ(pixel(result, 3, 0), heat_colors()[255]);
}

TEST(ColorBar, OfOneRowIsTheHighestValue) { EXPECT_EQ(pixel(color_bar(1, 1), 0, 0), heat_colors()[255]); }

TEST(Paste, OutsideTheTargetChangesNothing) {
  Image patch = make_image(3, 3, 3);
  for (size_t i = 0; i < patch.pixels.size(); ++i) patch.pixels[i] = static_cast<uint8_t>(i + 1);
  for (int64_t top = -6; top <= 8; ++top) {
    for (int64_t left = -6; left <= 8; ++left) {
      Image target = make_image(5, 5, 3);
      paste(patch, left, top, target);
      for (int64_t y = 0; y < 5; ++y) {
        for (int64_t x = 0; x < 5; ++x) {
          const bool inside = x >= left && x < left + 3 && y >= top && y < top + 3;
          const int want = inside ? 9 * static_cast<int>(y - top) + 3 * static_cast<int>(x - left) + 3 : 0;
          ASSERT_EQ(pixel(target, x, y)[2], want) << left << " " << top << " " << x << " " << y;
        }
      }
    }
  }
}

// From the formula of the map by an independent program; a byte more or less is the rounding of its powers.
TEST(HeatColors, AreThoseOfTheFormula) {
  const std::pair<size_t, std::array<int, 3>> expected[] = {
      {0, {30, 2, 59}},      {1, {32, 2, 60}},       {32, {73, 2, 85}},     {64, {121, 1, 94}},
      {96, {172, 4, 85}},    {128, {214, 49, 61}},   {160, {241, 99, 15}},  {192, {251, 151, 15}},
      {224, {250, 201, 92}}, {254, {248, 242, 161}}, {255, {248, 243, 163}}};
  for (const auto& [i, color] : expected) {
    for (size_t c = 0; c < 3; ++c) EXPECT_NEAR(heat_colors()[i][c], color[c], 1) << i << " " << c;
  }
}

TEST(Overlay, HasThreeFifthsOfTheMapByDefault) {
  Image image = make_image(2, 1, 3);
  image.pixels = {100, 0, 251, 7, 90, 31};
  const std::vector<float> values{1, 1};
  const Image result = overlay(image, {values, 2, 1}, {.low = 0.0F, .high = 1.0F});
  const auto& lightest = heat_colors()[255];
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(result.pixels[i], std::lround(0.4 * image.pixels[i] + 0.6 * lightest[i % 3])) << i;
  const std::vector<float> colors{1, 0, 0.5, 1, 0, 0.5}, shown{1, 1};
  const Image coloured = overlay(image, ColorMap{colors, shown, 2, 1});
  for (size_t i = 0; i < 6; ++i)
    EXPECT_EQ(coloured.pixels[i], std::lround(0.4 * image.pixels[i] + 0.6 * 255 * colors[i])) << i;
}

// Low and high limit the colours one by one; the other end is that of the map.
TEST(Overlay, OneLimitLeavesTheOtherToTheMap) {
  const Image image = make_image(3, 1, 3);
  const std::vector<float> values{2, 4, 6};
  const auto index_of = [&](const OverlayOptions& options, int64_t x) {
    const auto color = pixel(overlay(image, {values, 3, 1}, options), x, 0);
    return std::find(heat_colors().begin(), heat_colors().end(), color) - heat_colors().begin();
  };
  EXPECT_EQ(index_of({.opacity = 1}, 1), std::lround(255 * 0.5));
  EXPECT_EQ(index_of({.opacity = 1, .low = 0.0F}, 0), std::lround(255 * 2 / 6.0));
  EXPECT_EQ(index_of({.opacity = 1, .low = 0.0F}, 2), 255);
  EXPECT_EQ(index_of({.opacity = 1, .high = 10.0F}, 2), std::lround(255 * 4 / 8.0));
  EXPECT_EQ(index_of({.opacity = 1, .high = 10.0F}, 0), 0);
  EXPECT_EQ(index_of({.opacity = 1, .low = 9.0F, .high = 3.0F}, 2), 0) << "an empty range is dark";
  EXPECT_EQ(index_of({.opacity = 1, .low = 6.0F}, 2), 0);
}

// A pixel is covered if its centre is in the region, whose end does not belong to it.
TEST(Overlay, TheRegionCoversPixelsByTheirCentres) {
  Image image = make_image(5, 4, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{30});
  const std::vector<float> values{1};
  const auto covered = [&](const Region& region) {
    const Image result = overlay(image, {values, 1, 1}, {.opacity = 0, .region = region});
    std::string text;
    for (int64_t i = 0; i < 20; ++i) text += pixel(result, i % 5, i / 5)[0] == 30 ? '#' : '.';
    return text;
  };
  EXPECT_EQ(covered({0.5, 1.5, 2.5, 3.5}),
            "....."
            "##..."
            "##..."
            ".....");
  EXPECT_EQ(covered({0.6, 1.6, 2.6, 3.4}),
            "....."
            "....."
            ".##.."
            ".....");
  EXPECT_EQ(covered({-3, -1, 4.5, 0.6}),
            "####."
            "....."
            "....."
            ".....");
}

TEST(Overlay, BlendsBetweenTheCellsOfBothAxes) {
  const Image image = make_image(4, 6, 3);
  const std::vector<float> values{0, 40, 100, 200, 250, 255};  // 2 columns, 3 rows
  const Image result = overlay(image, {values, 2, 3}, {.opacity = 1, .low = 0.0F, .high = 255.0F});
  for (int64_t y = 0; y < 6; ++y) {
    for (int64_t x = 0; x < 4; ++x) {
      // Cells are two pixels wide and high: their centres are between pixels.
      const double u = std::clamp((static_cast<double>(x) + 0.5) / 2 - 0.5, 0.0, 1.0);
      const double v = std::clamp((static_cast<double>(y) + 0.5) / 2 - 0.5, 0.0, 2.0);
      const auto row = static_cast<size_t>(std::min(v, 1.0));
      const auto at = [&](size_t r, size_t c) { return static_cast<double>(values[2 * r + c]); };
      const double t = v - static_cast<double>(row);
      const double value =
          (at(row, 0) * (1 - u) + at(row, 1) * u) * (1 - t) + (at(row + 1, 0) * (1 - u) + at(row + 1, 1) * u) * t;
      EXPECT_EQ(pixel(result, x, y), heat_colors()[static_cast<size_t>(std::lround(value))]) << x << " " << y;
    }
  }
}

TEST(Overlay, RefusalsSayWhatIsWrong) {
  const Image image = make_image(4, 4, 3);
  const std::vector<float> six(6, 1.0F), two(2, 1.0F);
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> infinite{1, infinity};
  const auto refusal = [&](std::span<const float> values, int64_t width, int64_t height) {
    return error_of([&] { overlay(image, HeatMap{values, width, height}); });
  };
  EXPECT_ERROR(refusal(six, 2, 2), "overlay", "6");
  EXPECT_ERROR(refusal(six, 4, 1), "overlay", "6");
  EXPECT_ERROR(refusal(six, 3, 3), "overlay", "6");
  EXPECT_ERROR(refusal(six, -2, -3), "overlay", "6");
  EXPECT_ERROR(refusal(six, 7, 1), "overlay", "6");
  EXPECT_ERROR(refusal({}, 0, 5), "overlay", "0");
  EXPECT_ERROR(refusal(infinite, 2, 1), "overlay", "inf");
  EXPECT_ERROR(error_of([&] { overlay(image, ColorMap{six, two, 1, 1}); }), "overlay", "2");
  EXPECT_ERROR(error_of([&] { overlay(image, ColorMap{two, two, 2, 1}); }), "overlay", "2 values");
  EXPECT_ERROR(error_of([&] { overlay(image, ColorMap{six, infinite, 2, 1}); }), "overlay", "inf");
  EXPECT_ERROR(error_of([&] { overlay(Image{2, 2, 3, {}}, HeatMap{six, 3, 2}); }), "overlay", "0");
  EXPECT_ERROR(error_of([&] {
                 overlay(image, HeatMap{six, 3, 2}, {.region = Region{1, 2, 3, 2}});
               }),
               "overlay", "an empty one");
}

TEST(ColorBar, IsEvenlySpacedFromTheTop) {
  const Image bar = color_bar(3, 4);
  ASSERT_EQ(bar.width, 3);
  ASSERT_EQ(bar.height, 4);
  for (int64_t x = 0; x < 3; ++x) {
    for (int64_t y = 0; y < 4; ++y) EXPECT_EQ(pixel(bar, x, y), heat_colors()[static_cast<size_t>(255 - 85 * y)]);
  }
  EXPECT_EQ(pixel(color_bar(1, 3), 0, 1), heat_colors()[128]) << "of 127.5 the lighter one";
}

TEST(Grid, HasAGapOfFourByDefaultAndRefusesOtherNumbers) {
  const std::vector<Image> images = shades(2, 3, 5);
  const Image all = grid(images);
  EXPECT_EQ(all.width, 3 + 4 + 3);
  EXPECT_EQ(all.height, 5);
  EXPECT_EQ(grid(images, 2, 0).width, 6);
  EXPECT_EQ(grid(images, 1, 7).height, 5 + 7 + 5);
  EXPECT_ERROR(error_of([&] { grid(images, -1, 2); }), "grid", "-1 and 2");
  EXPECT_ERROR(error_of([&] { grid(images, 1, -2); }), "grid", "1 and -2");
  EXPECT_ERROR(error_of([] { grid({}); }), "grid", "none");
  std::vector<Image> others = images;
  others[1] = make_image(3, 4, 3);
  EXPECT_ERROR(error_of([&] { grid(others); }), "grid", "3×4");
  others[1] = make_image(2, 5, 3);
  EXPECT_ERROR(error_of([&] { grid(others); }), "grid", "2×5");
  others[1].pixels.pop_back();
  EXPECT_ERROR(error_of([&] { grid(others); }), "grid", "29");
}

TEST(Overlay, WhatIsNotShownIsPaleAtAnyOpacity) {
  Image image = make_image(40, 20, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{60});
  const std::vector<float> colors{1, 0.5, 0, 0, 0, 1}, first{1, 0};
  for (const double opacity : {0.0, 0.5, 1.0}) {
    const Image result = overlay(image, ColorMap{colors, first, 2, 1}, {.opacity = opacity});
    EXPECT_EQ(pixel(result, 39, 19), (std::array<uint8_t, 3>{190, 190, 190})) << opacity;
    EXPECT_EQ(pixel(result, 0, 0)[2], std::lround(60 * (1 - opacity))) << opacity;
  }
}

}  // namespace
}  // namespace vitrail::image
