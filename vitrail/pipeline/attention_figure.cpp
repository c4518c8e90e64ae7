// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/attention_figure.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "vitrail/image/color_internal.h"
#include "vitrail/image/overlay.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/image/text.h"

namespace vitrail::pipeline {
namespace {

using image::Image;

constexpr int64_t kTileEdge = 224;   // the longest edge of a tile of a grid
constexpr int64_t kTileScale = 2;    // the scale of a tile's text
constexpr int64_t kCharacters = 80;  // about as many fit beside one another in the width of the figure

Image white(int64_t width, int64_t height) {
  Image image = image::make_image(width, height, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{255});
  return image;
}

int64_t text_scale(int64_t width) { return std::max<int64_t>(2, width / (6 * kCharacters)); }

// The value as printf's %g writes it.
std::string significant(float value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*g", digits, static_cast<double>(value));
  return text;
}

std::array<float, 2> range_of(const Tensor& map) {
  const auto [low, high] = std::minmax_element(map.data<float>(), map.data<float>() + map.numel());
  return {*low, *high};
}

// A white frame of `line` pixels around a patch.
void outline(const std::array<int64_t, 2>& patch, const Tensor& map, const image::Region& region, int64_t line,
             Image& image) {
  const double width = (region.right - region.left) / static_cast<double>(map.size(1));
  const double height = (region.bottom - region.top) / static_cast<double>(map.size(0));
  const auto left = std::lround(region.left + static_cast<double>(patch[1]) * width), right = std::lround(left + width);
  const auto top = std::lround(region.top + static_cast<double>(patch[0]) * height), bottom = std::lround(top + height);
  image::paste(white(right - left, line), left, top, image);
  image::paste(white(right - left, line), left, bottom - line, image);
  image::paste(white(line, bottom - top), left, top, image);
  image::paste(white(line, bottom - top), right - line, top, image);
}

// The photograph with one map over it, and without.
struct Views {
  Image plain, colored;
};

Views views_of(const AttentionFigure& figure, const Image& photo, const Tensor& map) {
  const double x = static_cast<double>(photo.width) / static_cast<double>(figure.photo.width);
  const double y = static_cast<double>(photo.height) / static_cast<double>(figure.photo.height);
  const image::Region region{figure.region.left * x, figure.region.top * y, figure.region.right * x,
                             figure.region.bottom * y};
  const image::HeatMap values{{map.data<float>(), static_cast<size_t>(map.numel())}, map.size(1), map.size(0)};
  Views views{to_mode(photo, image::ColorMode::rgb), image::overlay(photo, values, {.region = region})};
  if (figure.query) {
    const int64_t line = std::max<int64_t>(1, photo.width / 300);
    outline(*figure.query, map, region, line, views.plain);
    outline(*figure.query, map, region, line, views.colored);
  }
  return views;
}

// The photograph, the map over it, and its scale.
Image single(const AttentionFigure& figure) {
  const Tensor& map = figure.maps.front().map;
  const Views views = views_of(figure, figure.photo, map);
  const int64_t width = views.plain.width, height = views.plain.height;
  const int64_t scale = text_scale(2 * width), gap = 4 * scale, bar = 8 * scale;
  const auto [low, high] = range_of(map);
  const std::string highest = significant(high, 3), lowest = significant(low, 3);
  const int64_t numbers = std::max(image::text_width(highest, scale), image::text_width(lowest, scale));
  Image result = white(2 * width + 3 * gap + bar + numbers, std::max(height, 2 * image::line_height(scale)));
  image::paste(views.plain, 0, 0, result);
  image::paste(views.colored, width + gap, 0, result);
  image::paste(image::color_bar(bar, height), 2 * (width + gap), 0, result);
  const int64_t at = 2 * (width + gap) + bar + gap;
  image::draw_text(highest, at, scale, scale, result);
  image::draw_text(lowest, at, result.height - image::line_height(scale), scale, result);
  return result;
}

// The photograph at the size of a tile.
Image tile_of(const Image& photo) {
  const int64_t longest = std::max(photo.width, photo.height);
  const auto edge = [&](int64_t length) { return std::max<int64_t>(1, length * kTileEdge / longest); };
  return image::resize(photo, edge(photo.width), edge(photo.height), image::Filter::bicubic);
}

// A tile below its label and the range of its values.
Image labelled(const Image& tile, const std::string& label, const std::string& range) {
  const int64_t line = image::line_height(kTileScale);
  const int64_t text = std::max(image::text_width(label, kTileScale), image::text_width(range, kTileScale));
  Image result = white(std::max(tile.width, text), tile.height + 2 * line);
  image::draw_text(label, 0, 0, kTileScale, result);
  image::draw_text(range, 0, line, kTileScale, result);
  image::paste(tile, 0, 2 * line, result);
  return result;
}

// All maps, beside the photograph.
Image several(const AttentionFigure& figure) {
  const Image photo = tile_of(figure.photo);
  std::vector<Image> tiles;
  int64_t widest = 0;
  for (const AttentionMap& item : figure.maps) {
    const auto [low, high] = range_of(item.map);
    const std::string range = significant(low, 2) + " to " + significant(high, 2);
    tiles.push_back(labelled(views_of(figure, photo, item.map).colored, item.label, range));
    widest = std::max(widest, tiles.back().width);
  }
  for (Image& tile : tiles) {
    Image padded = white(widest, tile.height);
    image::paste(tile, 0, 0, padded);
    tile = std::move(padded);
  }
  constexpr int64_t kGap = 8, kBar = 12;
  const Image grid = image::grid(tiles, figure.columns, kGap);
  const Views views = views_of(figure, figure.photo, figure.maps.front().map);
  const int64_t width = views.plain.width, right = width + kGap + grid.width + kGap;
  const int64_t ends = image::text_width("highest", kTileScale);
  Image result = white(right + kBar + 4 + ends, std::max(views.plain.height, grid.height));
  image::paste(views.plain, 0, 0, result);
  image::paste(grid, width + kGap, 0, result);
  image::paste(image::color_bar(kBar, grid.height), right, 0, result);
  image::draw_text("highest", right + kBar + 4, kTileScale, kTileScale, result);
  image::draw_text("lowest", right + kBar + 4, grid.height - image::line_height(kTileScale), kTileScale, result);
  return result;
}

}  // namespace

Image draw(const AttentionFigure& figure) {
  const Image maps = figure.maps.size() == 1 ? single(figure) : several(figure);
  const int64_t scale = text_scale(maps.width), line = image::line_height(scale);
  int64_t width = maps.width;
  for (const std::string& text : figure.caption) width = std::max(width, image::text_width(text, scale));
  Image result = white(width, maps.height + line / 2 + static_cast<int64_t>(figure.caption.size()) * line);
  image::paste(maps, 0, 0, result);
  int64_t top = maps.height + line / 2;
  for (const std::string& text : figure.caption) {
    image::draw_text(text, 0, top, scale, result);
    top += line;
  }
  return result;
}

}  // namespace vitrail::pipeline
