// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attention_figure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vitrail/image/image.h"

namespace vitrail::pipeline {
namespace {

using image::Image;

Tensor ramp(int64_t rows, int64_t columns) {
  Tensor map = Tensor::empty({rows, columns});
  for (int64_t i = 0; i < map.numel(); ++i) map.data<float>()[i] = static_cast<float>(i);
  return map;
}

bool is_white(const Image& image, int64_t x, int64_t y) {
  const uint8_t* pixel = image.row(y) + 3 * x;
  return pixel[0] == 255 && pixel[1] == 255 && pixel[2] == 255;
}

// Whether a row is white from `left` on.
bool is_blank(const Image& image, int64_t y, int64_t left = 0) {
  for (int64_t x = left; x < image.width; ++x) {
    if (!is_white(image, x, y)) return false;
  }
  return true;
}

// A frame of one pixel around the patch [row 1, column 2] of a region that is not the whole photograph.
TEST(AttentionFigure, OutlinesTheQuerysPatchInThePhotographAndOverTheMap) {
  const Image photo = image::make_image(100, 80, 3);
  const Image figure =
      draw({.photo = photo, .region = {10, 20, 90, 60}, .maps = {{"", ramp(2, 4)}}, .query = {{1, 2}}});
  const auto is_frame = [](int64_t x, int64_t y) {
    return x >= 50 && x < 70 && y >= 40 && y < 60 && (x == 50 || x == 69 || y == 40 || y == 59);
  };
  const int64_t second = 100 + 8;  // the left edge of the photograph with the map
  for (int64_t y = 0; y < 80; ++y) {
    for (int64_t x = 0; x < 100; ++x) {
      EXPECT_EQ(is_white(figure, x, y), is_frame(x, y)) << x << "," << y;
      if (is_frame(x, y)) {
        EXPECT_TRUE(is_white(figure, second + x, y)) << x << "," << y;
      }
    }
  }
}

TEST(AttentionFigure, OneMapHasThePhotographsSizeAndSeveralAreTilesBesideIt) {
  const Image photo = image::make_image(100, 80, 3);
  const std::vector<AttentionMap> five(5, {"layer", ramp(2, 4)});
  const auto size_of = [&](size_t count, int64_t columns) {
    const Image figure = draw({.photo = photo,
                               .region = {0, 0, 100, 80},
                               .maps = {five.begin(), five.begin() + static_cast<std::ptrdiff_t>(count)},
                               .columns = columns});
    return std::pair(figure.width, figure.height);
  };
  EXPECT_GE(size_of(1, 0).first, 2 * 100);
  const auto [wide, low] = size_of(5, 5);
  const auto [narrow, high] = size_of(5, 1);
  EXPECT_GT(wide, 5 * 224);
  EXPECT_GT(high, 5 * 224 * 80 / 100);
  EXPECT_LT(narrow, 2 * 224 + 200);
  EXPECT_LT(low, 2 * 224);
  EXPECT_EQ(size_of(4, 0), size_of(4, 2));  // nearly a square
}

TEST(AttentionFigure, EachLineOfTheCaptionIsBelowTheMaps) {
  const Image photo = image::make_image(300, 80, 3);
  const auto drawn = [&](std::vector<std::string> caption) {
    return draw({.photo = photo, .region = {0, 0, 300, 80}, .maps = {{"", ramp(2, 2)}}, .caption = std::move(caption)});
  };
  const Image none = drawn({}), one = drawn({"photo"}), two = drawn({"photo", "attention"});
  const int64_t line = one.height - none.height;
  EXPECT_GT(line, 0);
  EXPECT_EQ(two.height - one.height, line);
  EXPECT_EQ(one.width, none.width);
  const auto ink = [&](const Image& figure, int64_t top) {
    bool any = false;
    for (int64_t y = top; y < top + line; ++y) any = any || !is_blank(figure, y);
    return any;
  };
  EXPECT_TRUE(ink(two, none.height));
  EXPECT_TRUE(ink(two, none.height + line));
  EXPECT_TRUE(std::equal(one.pixels.begin(), one.pixels.end(), two.pixels.begin()));
  EXPECT_GT(drawn({std::string(400, 'x')}).width, none.width);  // not cut off
}

}  // namespace
}  // namespace vitrail::pipeline
