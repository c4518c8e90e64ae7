// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attention_figure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "vitrail/image/image.h"
#include "vitrail/image/overlay.h"
#include "vitrail/image/resize_internal.h"
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

Image blank(int64_t width, int64_t height) {
  Image image = image::make_image(width, height, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{255});
  return image;
}

// A photograph whose pixels differ.
Image pattern(int64_t width, int64_t height) {
  Image photo = image::make_image(width, height, 3);
  for (size_t i = 0; i < photo.pixels.size(); ++i) photo.pixels[i] = static_cast<uint8_t>(i * 37 % 211);
  return photo;
}

Image overlay_of(const Image& photo, const Tensor& map, const image::Region& region) {
  return image::overlay(photo,
                        image::HeatMap{{map.data<float>(), static_cast<size_t>(map.numel())}, map.size(1), map.size(0)},
                        {.region = region});
}

// The photograph, the map and the bar with gaps of four dots of the text, which grows with the figure: a dot for each
// 480 pixels of both photographs, two at least.
TEST(AttentionFigure, OfOneMapHasThePhotographTheMapAndItsScaleBesideOneAnother) {
  for (const auto& [width, height, scale] :
       {std::tuple(100, 80, 2), std::tuple(719, 10, 2), std::tuple(720, 10, 3), std::tuple(1000, 90, 4)}) {
    const Image photo = pattern(width, height);
    const image::Region region{0.1 * width, 0.2 * height, 0.8 * width, 0.9 * height};
    Tensor map = ramp(3, 2);
    map.data<float>()[0] = -0.01236F;
    const Image figure = draw({.photo = photo, .region = region, .maps = {{"", map}}});
    const int64_t gap = 4 * scale, bar = 8 * scale, line = image::line_height(scale);
    const int64_t numbers = std::max(image::text_width("5", scale), image::text_width("-0.0124", scale));
    Image want = blank(2 * width + 3 * gap + bar + numbers, std::max<int64_t>(height, 2 * line));
    image::paste(photo, 0, 0, want);
    image::paste(overlay_of(photo, map, region), width + gap, 0, want);
    image::paste(image::color_bar(bar, height), 2 * width + 2 * gap, 0, want);
    image::draw_text("5", 2 * width + 3 * gap + bar, scale, scale, want);
    image::draw_text("-0.0124", 2 * width + 3 * gap + bar, want.height - line, scale, want);
    Image with_margin = blank(figure.width, figure.height);
    image::paste(want, 0, 0, with_margin);
    EXPECT_EQ(figure.width, want.width) << width;
    EXPECT_TRUE(figure.pixels == with_margin.pixels) << width;
  }
}

// The photograph in full, tiles of 224 pixels at most with two lines above each, and the bar.
TEST(AttentionFigure, OfSeveralMapsHasTilesOfTheWidestsSize) {
  for (const auto& [width, height, tile_width, tile_height] :
       {std::tuple(300, 100, 224, 74), std::tuple(90, 301, 66, 224), std::tuple(3, 900, 1, 224)}) {
    const Image photo = pattern(width, height);
    const image::Region region{0, 0.5 * height, 0.5 * width, static_cast<double>(height)};
    Tensor second = ramp(2, 3);
    for (int64_t i = 0; i < 6; ++i) second.data<float>()[i] = 0.5F - second.data<float>()[i] / 7;
    const std::vector<AttentionMap> maps{
        {"a", ramp(2, 3)}, {"a label that is wider than a tile", second}, {"c", second}};
    const Image figure = draw({.photo = photo, .region = region, .maps = maps, .columns = 2});
    const double x = static_cast<double>(tile_width) / width, y = static_cast<double>(tile_height) / height;
    const image::Region of_tile{region.left * x, region.top * y, region.right * x, region.bottom * y};
    const Image small = image::resize(photo, tile_width, tile_height, image::Filter::bicubic);
    const int64_t line = image::line_height(2),
                  widest = std::max<int64_t>(tile_width, image::text_width(maps[1].label, 2));
    std::vector<Image> tiles;
    for (const AttentionMap& map : maps) {
      Image tile = blank(widest, tile_height + 2 * line);
      image::draw_text(map.label, 0, 0, 2, tile);
      image::draw_text(map.label == "a" ? "0 to 5" : "-0.21 to 0.5", 0, line, 2, tile);
      image::paste(overlay_of(small, map.map, of_tile), 0, 2 * line, tile);
      tiles.push_back(tile);
    }
    const Image grid = image::grid(tiles, 2, 8);
    const int64_t right = width + 8 + grid.width + 8, ends = image::text_width("highest", 2);
    Image want = blank(right + 12 + 4 + ends, std::max<int64_t>(height, grid.height));
    image::paste(photo, 0, 0, want);
    image::paste(grid, width + 8, 0, want);
    image::paste(image::color_bar(12, grid.height), right, 0, want);
    image::draw_text("highest", right + 16, 2, 2, want);
    image::draw_text("lowest", right + 16, grid.height - line, 2, want);
    ASSERT_EQ(figure.width, want.width);
    Image with_margin = blank(figure.width, figure.height);
    image::paste(want, 0, 0, with_margin);
    EXPECT_TRUE(figure.pixels == with_margin.pixels) << width;
  }
}

// A pixel for each 300 of the photograph's width, also around the patch of the map.
TEST(AttentionFigure, TheOutlineIsThickerOnALargePhotograph) {
  for (const auto& [width, line] : {std::pair(299, 1), std::pair(599, 1), std::pair(600, 2), std::pair(950, 3)}) {
    const Image photo = image::make_image(width, 60, 3);
    const Image figure = draw({.photo = photo,
                               .region = {0, 0, static_cast<double>(width), 60},
                               .maps = {{"", ramp(2, 3)}},
                               .query = {{1, 0}}});
    const int64_t patch = std::lround(width / 3.0);
    for (int64_t y = 0; y < 60; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        const bool frame = y >= 30 && x < patch && (x < line || x >= patch - line || y < 30 + line || y >= 60 - line);
        ASSERT_EQ(is_white(figure, x, y), frame) << x << "," << y << " of " << width;
      }
    }
  }
}

// The text of the caption has the scale of the whole figure, which a long line makes wider.
TEST(AttentionFigure, TheCaptionHasTheScaleOfTheFigure) {
  const Image photo = image::make_image(1000, 30, 3);
  const std::string text(100, 'm');
  const Image bare = draw({.photo = photo, .region = {0, 0, 1000, 30}, .maps = {{"", ramp(2, 2)}}});
  const Image figure =
      draw({.photo = photo, .region = {0, 0, 1000, 30}, .maps = {{"", ramp(2, 2)}}, .caption = {"one", text}});
  const int64_t line = image::line_height(4);  // both photographs have 2,000 pixels and the bar some more
  const int64_t maps = std::max<int64_t>(30, 2 * line);
  EXPECT_EQ(bare.height, maps + line / 2);
  EXPECT_EQ(figure.height, maps + line / 2 + 2 * line);
  EXPECT_EQ(figure.width, std::max(bare.width, image::text_width(text, 4)));
  Image want = blank(figure.width, 2 * line);
  image::draw_text("one", 0, 0, 4, want);
  image::draw_text(text, 0, line, 4, want);
  EXPECT_TRUE(std::equal(want.pixels.begin(), want.pixels.end(), figure.row(maps + line / 2)));
}

}  // namespace
}  // namespace vitrail::pipeline
