// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/overlay.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/colormap_internal.h"

namespace vitrail::image {
namespace {

// The two cells around a pixel and the interpolation weight.
struct CellPosition {
  int64_t first = 0, second = 0;
  double weight = 0;  // weight of the second cell
  bool covered = true;
};

// The cells divide the range from `begin` to `end` in pixels.
std::vector<CellPosition> positions(int64_t pixels, int64_t cells, double begin, double end) {
  std::vector<CellPosition> result(pixels);
  for (int64_t i = 0; i < pixels; ++i) {
    const double center = static_cast<double>(i) + 0.5;
    result[i].covered = center >= begin && center < end;
    const double at = (center - begin) * static_cast<double>(cells) / (end - begin) - 0.5;
    const double clamped = std::clamp(at, 0.0, static_cast<double>(cells - 1));
    result[i].first = static_cast<int64_t>(clamped);
    result[i].second = std::min(result[i].first + 1, cells - 1);
    result[i].weight = clamped - static_cast<double>(result[i].first);
  }
  return result;
}

void check_map(const HeatMap& map) {
  const bool consistent = map.width > 0 && map.height > 0 && map.width <= static_cast<int64_t>(map.values.size()) &&
                          static_cast<int64_t>(map.values.size()) / map.width == map.height &&
                          static_cast<int64_t>(map.values.size()) % map.width == 0;
  if (!consistent) throw Error("overlay", str(map.width, "×", map.height, " values"), str(map.values.size()));
  for (const float value : map.values) {
    if (!std::isfinite(value)) throw Error("overlay", "finite values", str(value));
  }
}

// Maps low…high to 0…255.
struct Scale {
  double low = 0, factor = 0;
  int64_t operator()(double value) const { return std::clamp<int64_t>(std::lround((value - low) * factor), 0, 255); }
};

Scale scale_of(const HeatMap& map, const OverlayOptions& options) {
  const auto [min, max] = std::minmax_element(map.values.begin(), map.values.end());
  const double low = options.low.value_or(*min), high = options.high.value_or(*max);
  return {low, high > low ? 255.0 / (high - low) : 0.0};
}

uint8_t pale(uint8_t value) { return static_cast<uint8_t>((value + 2 * 255) / 3); }

// The image in RGB, with paint(y, x, pixel) for the pixels that the map covers.  The others are pale.
template <class Paint>
Image painted(const Image& image, int64_t width, int64_t height, const OverlayOptions& options, const Paint& paint) {
  check_image(image, "overlay");
  Image result = to_mode(image, ColorMode::rgb);
  const Region region =
      options.region.value_or(Region{0, 0, static_cast<double>(image.width), static_cast<double>(image.height)});
  if (!(region.left < region.right && region.top < region.bottom)) throw Error("overlay", "a region", "an empty one");
  const std::vector<CellPosition> columns = positions(image.width, width, region.left, region.right);
  const std::vector<CellPosition> rows = positions(image.height, height, region.top, region.bottom);
  for (int64_t y = 0; y < result.height; ++y) {
    uint8_t* pixel = result.row(y);
    for (const CellPosition& x : columns) {
      if (x.covered && rows[y].covered) {
        paint(rows[y], x, pixel);
      } else {
        std::transform(pixel, pixel + 3, pixel, pale);
      }
      pixel += 3;
    }
  }
  return result;
}

}  // namespace

Image overlay(const Image& image, const HeatMap& map, const OverlayOptions& options) {
  check_map(map);
  const double opacity = std::clamp(options.opacity, 0.0, 1.0);
  const Scale scale = scale_of(map, options);
  return painted(
      image, map.width, map.height, options, [&](const CellPosition& y, const CellPosition& x, uint8_t* pixel) {
        const float *above = map.values.data() + y.first * map.width, *below = map.values.data() + y.second * map.width;
        const double top = above[x.first] + (above[x.second] - above[x.first]) * x.weight;
        const double bottom = below[x.first] + (below[x.second] - below[x.first]) * x.weight;
        const auto& color = heat_colors()[scale(top + (bottom - top) * y.weight)];
        for (size_t channel = 0; channel < 3; ++channel) {
          pixel[channel] = static_cast<uint8_t>(std::lround(pixel[channel] * (1 - opacity) + color[channel] * opacity));
        }
      });
}

Image overlay(const Image& image, const ColorMap& map, const OverlayOptions& options) {
  check_map({map.shown, map.width, map.height});
  if (map.colors.size() != 3 * map.shown.size()) {
    throw Error("overlay", str("colours of ", map.shown.size(), " patches"), str(map.colors.size(), " values"));
  }
  const double opacity = std::clamp(options.opacity, 0.0, 1.0);
  return painted(
      image, map.width, map.height, options, [&](const CellPosition& y, const CellPosition& x, uint8_t* pixel) {
        // The weights of the four patches around the pixel; colours of patches that are not shown have none.
        const std::array<int64_t, 4> patches{y.first * map.width + x.first, y.first * map.width + x.second,
                                             y.second * map.width + x.first, y.second * map.width + x.second};
        const std::array<double, 4> weights{(1 - y.weight) * (1 - x.weight), (1 - y.weight) * x.weight,
                                            y.weight * (1 - x.weight), y.weight * x.weight};
        double shown = 0;
        std::array<double, 3> color{};
        for (size_t i = 0; i < 4; ++i) {
          const double weight = weights[i] * map.shown[patches[i]];
          shown += weight;
          for (size_t c = 0; c < 3; ++c) color[c] += weight * map.colors[3 * patches[i] + static_cast<int64_t>(c)];
        }
        for (size_t c = 0; c < 3; ++c) {
          const double mixed =
              shown * (1 - opacity) * pixel[c] + 255 * opacity * color[c] + (1 - shown) * pale(pixel[c]);
          pixel[c] = static_cast<uint8_t>(std::clamp<int64_t>(std::lround(mixed), 0, 255));
        }
      });
}

Image color_bar(int64_t width, int64_t height) {
  Image bar = make_image(width, height, 3);
  for (int64_t y = 0; y < height; ++y) {
    const auto& color = heat_colors()[static_cast<size_t>(height > 1 ? 255 - y * 255 / (height - 1) : 255)];
    for (int64_t x = 0; x < width; ++x) std::copy(color.begin(), color.end(), bar.row(y) + 3 * x);
  }
  return bar;
}

void paste(const Image& image, int64_t left, int64_t top, Image& target) {
  const Image source = to_mode(image, ColorMode::rgb);
  const int64_t first = std::max<int64_t>(-left, 0), last = std::min(source.width, target.width - left);
  if (last <= first) return;
  for (int64_t y = std::max<int64_t>(-top, 0); y < std::min(source.height, target.height - top); ++y) {
    std::memcpy(target.row(top + y) + (left + first) * 3, source.row(y) + first * 3,
                static_cast<size_t>((last - first) * 3));
  }
}

Image grid(std::span<const Image> images, int64_t columns, int64_t gap) {
  if (images.empty()) throw Error("grid", "at least one image", "none");
  if (columns < 0 || gap < 0) throw Error("grid", "columns and a gap of at least 0", str(columns, " and ", gap));
  const int64_t count = static_cast<int64_t>(images.size());
  if (columns == 0) columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  columns = std::min(columns, count);
  const int64_t rows = ceil_div(count, columns);
  const int64_t width = images[0].width, height = images[0].height;
  Image result = make_image(columns * (width + gap) - gap, rows * (height + gap) - gap, 3);
  std::fill(result.pixels.begin(), result.pixels.end(), uint8_t{255});
  for (int64_t i = 0; i < count; ++i) {
    check_image(images[i], "grid");
    if (images[i].width != width || images[i].height != height) {
      throw Error("grid", str("images of ", width, "×", height), str(images[i].width, "×", images[i].height));
    }
    paste(images[i], i % columns * (width + gap), i / columns * (height + gap), result);
  }
  return result;
}

}  // namespace vitrail::image
