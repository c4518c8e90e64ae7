// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attention_figure.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "vitrail/image/image.h"
#include "vitrail/image/text.h"

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

// A tile's label is above its range, from the lowest value to the highest with two digits.
TEST(AttentionFigure, TilesHaveTheirLabelsAndRanges) {
  const Image photo = image::make_image(224, 224, 3);
  Tensor high = ramp(2, 2);
  for (int64_t i = 0; i < 4; ++i) high.data<float>()[i] += 40;
  const Image figure = draw(
      {.photo = photo, .region = {0, 0, 224, 224}, .maps = {{"layer 1", ramp(2, 2)}, {"layer 2", high}}, .columns = 2});
  const int64_t line = image::line_height(2), width = 224, gap = 8;
  const auto shows = [&](const std::string& text, int64_t left, int64_t top) {
    Image want = image::make_image(width, line, 3);
    std::fill(want.pixels.begin(), want.pixels.end(), uint8_t{255});
    image::draw_text(text, 0, 0, 2, want);
    for (int64_t y = 0; y < line; ++y) {
      if (!std::equal(want.row(y), want.row(y) + 3 * width, figure.row(top + y) + 3 * left)) return false;
    }
    return true;
  };
  const int64_t first = 224 + gap, second = first + width + gap;
  EXPECT_TRUE(shows("layer 1", first, 0));
  EXPECT_TRUE(shows("0 to 3", first, line));
  EXPECT_TRUE(shows("layer 2", second, 0));
  EXPECT_TRUE(shows("40 to 43", second, line));
}

// Half a line of space is between the maps and the caption, whose last line is the last of the figure.
TEST(AttentionFigure, HasRoomForItsCaption) {
  const Image photo = image::make_image(300, 80, 3);
  for (const size_t lines : {0, 1, 2, 5}) {
    const Image figure = draw({.photo = photo,
                               .region = {0, 0, 300, 80},
                               .maps = {{"", ramp(2, 2)}},
                               .caption = std::vector<std::string>(lines, "photo")});
    const int64_t line = image::line_height(2);  // a figure of less than 1,440 pixels has texts of this scale
    EXPECT_EQ(figure.height, 80 + line / 2 + static_cast<int64_t>(lines) * line) << lines;
    if (lines == 0) continue;
    Image text = image::make_image(figure.width, line, 3);
    std::fill(text.pixels.begin(), text.pixels.end(), uint8_t{255});
    image::draw_text("photo", 0, 0, 2, text);
    EXPECT_TRUE(std::equal(text.pixels.begin(), text.pixels.end(), figure.row(figure.height - line))) << lines;
  }
}

// The highest value is at the top of the bar, as its number is, and the lowest at the bottom.
TEST(AttentionFigure, TellsTheRangeOfAMap) {
  const Image photo = image::make_image(100, 80, 3);
  Tensor map = ramp(2, 2);  // 0 … 3
  for (int64_t i = 0; i < 4; ++i) map.data<float>()[i] += 4;
  const Image figure = draw({.photo = photo, .region = {0, 0, 100, 80}, .maps = {{"", map}}});
  const int64_t line = image::line_height(2), numbers = figure.width - image::text_width("7", 2);
  const auto shows = [&](const char* number, int64_t top) {
    Image text = image::make_image(figure.width, figure.height, 3);
    std::fill(text.pixels.begin(), text.pixels.end(), uint8_t{255});
    image::draw_text(number, numbers, top, 2, text);
    for (int64_t y = top; y < top + line && y < figure.height; ++y) {
      if (!std::equal(text.row(y) + 3 * numbers, text.row(y) + 3 * figure.width, figure.row(y) + 3 * numbers))
        return false;
    }
    return true;
  };
  EXPECT_TRUE(shows("7", 2));
  EXPECT_TRUE(shows("4", 80 - line));
}

}  // namespace
}  // namespace vitrail::pipeline
