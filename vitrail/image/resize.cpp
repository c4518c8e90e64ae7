// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_internal.h"

#include <algorithm>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/image/resample_weights_internal.h"
#include "vitrail/kernels/rowwise/resample.h"

namespace vitrail::image {
namespace {

constexpr int64_t kMaxSize = 0x7fffffff;  // Pillow's sizes are 32-bit too

kernels::ResampleAxis view(const ResampleWeights& weights) {
  return {static_cast<int64_t>(weights.firsts.size()), weights.taps, weights.firsts.data(), weights.counts.data(),
          weights.weights.data()};
}

// Rows [top, top + rows) of the source, each resampled along x.
Image resample_rows(const Image& source, const ResampleWeights& weights, int64_t top, int64_t rows) {
  Image result = make_image(static_cast<int64_t>(weights.firsts.size()), rows, source.channels);
  const kernels::PixelRows pixels{source.row(top), rows, source.row_bytes(), static_cast<int>(source.channels)};
  kernels::resample_x(pixels, view(weights), result.pixels.data());
  return result;
}

// Columns [left, left + width) of the source, resampled along y.
Image resample_columns(const Image& source, const ResampleWeights& weights, int64_t left, int64_t width) {
  Image result = make_image(width, static_cast<int64_t>(weights.firsts.size()), source.channels);
  const kernels::PixelRows pixels{source.pixels.data(), source.height, source.row_bytes(),
                                  static_cast<int>(source.channels)};
  kernels::resample_y(pixels, left * source.channels, result.row_bytes(), view(weights), result.pixels.data());
  return result;
}

// What a pass reads: source positions [first, last).
struct Extent {
  int64_t first = 0, last = 0;
};

Extent extent_of(const ResampleWeights& weights) {
  return {weights.firsts.front(), weights.firsts.back() + weights.counts.back()};
}

// The same weights for a source that begins at `position` of the one they were made for.
void count_from(int64_t position, ResampleWeights& weights) {
  for (int64_t& first : weights.firsts) first -= position;
}

Image crop(const Image& source, const Window& window) {
  Image result = make_image(window.width, window.height, source.channels);
  for (int64_t y = 0; y < window.height; ++y) {
    std::memcpy(result.row(y), source.row(window.top + y) + window.left * source.channels,
                static_cast<size_t>(result.row_bytes()));
  }
  return result;
}

// The source position of each of the positions [begin, begin + count) of a nearest resize, or −1 outside the source.
// Pillow adds the step up from the first position, so the rounding of every sum before counts.
std::vector<int64_t> nearest_positions(const Axis& axis) {
  std::vector<int64_t> positions;
  const double step = scale_of(axis);
  double at = axis.from + step * 0.5;
  for (int64_t i = 0; i < axis.end; ++i, at += step) {
    if (i < axis.begin) continue;
    const int64_t position = at < 0.0 ? -1 : static_cast<int64_t>(at);
    positions.push_back(position < axis.source_size ? position : -1);
  }
  return positions;
}

Image resize_nearest(const Image& source, const Window& part, const Axis& x_axis, const Axis& y_axis) {
  const std::vector<int64_t> columns = nearest_positions(x_axis), rows = nearest_positions(y_axis);
  Image result = make_image(x_axis.end - x_axis.begin, y_axis.end - y_axis.begin, source.channels);
  for (int64_t y = 0; y < result.height; ++y) {
    if (rows[y] < 0) continue;
    const uint8_t* from = source.row(part.top + rows[y]) + part.left * source.channels;
    uint8_t* out = result.row(y);
    for (const int64_t column : columns) {
      for (int64_t c = 0; c < source.channels; ++c, ++out) {
        if (column >= 0) *out = from[column * source.channels + c];
      }
    }
  }
  return result;
}

bool changes_nothing(const Axis& axis) {
  return axis.size == axis.source_size && axis.from == 0 && axis.to == static_cast<double>(axis.size);
}

// Pillow 13 starts with the pass along y where the height shrinks by more than twice as many pixels as the width
// (earlier versions always start along x).  The order shows: 8 bits are kept in between.
bool columns_first(const Axis& x_axis, const Axis& y_axis) {
  const int64_t fewer_rows = y_axis.source_size - y_axis.size, fewer_columns = x_axis.source_size - x_axis.size;
  return fewer_rows > 0 && fewer_rows > 2 * fewer_columns;
}

// The weights for a source of which the axis sees a part that begins at `offset`.
ResampleWeights weights_at(int64_t offset, const Axis& axis, Filter filter) {
  ResampleWeights weights = resample_weights(axis, filter);
  count_from(-offset, weights);
  return weights;
}

Image resize_filtered(const Image& source, const Window& part, const Axis& x_axis, const Axis& y_axis, Filter filter) {
  const int64_t width = x_axis.end - x_axis.begin, height = y_axis.end - y_axis.begin;
  if (changes_nothing(y_axis)) {
    return resample_rows(source, weights_at(part.left, x_axis, filter), part.top + y_axis.begin, height);
  }
  ResampleWeights y_weights = weights_at(part.top, y_axis, filter);
  if (changes_nothing(x_axis)) return resample_columns(source, y_weights, part.left + x_axis.begin, width);
  ResampleWeights x_weights = weights_at(part.left, x_axis, filter);
  // The first pass makes only what the second one reads.
  if (columns_first(x_axis, y_axis)) {
    const Extent used = extent_of(x_weights);
    const Image columns = resample_columns(source, y_weights, used.first, used.last - used.first);
    count_from(used.first, x_weights);
    return resample_rows(columns, x_weights, 0, height);
  }
  const Extent used = extent_of(y_weights);
  const Image rows = resample_rows(source, x_weights, used.first, used.last - used.first);
  count_from(used.first, y_weights);
  return resample_columns(rows, y_weights, 0, width);
}

void check_part(const Image& source, const Window& part) {
  check_image(source, "resize");
  const bool inside = part.left >= 0 && part.top >= 0 && part.width > 0 && part.height > 0 &&
                      part.width <= source.width - part.left && part.height <= source.height - part.top;
  if (!inside) {
    throw Error("resize", str("a part of ", source.width, "×", source.height),
                str(part.width, "×", part.height, " at ", part.left, ", ", part.top));
  }
}

void check(const Axis& x_axis, const Axis& y_axis) {
  for (const Axis& axis : {x_axis, y_axis}) {
    if (axis.size < 1 || axis.size > kMaxSize) {
      throw Error("resize", str("a size from 1×1 to ", kMaxSize, "×", kMaxSize), str(x_axis.size, "×", y_axis.size));
    }
    if (!(axis.from >= 0 && axis.from < axis.to && axis.to <= static_cast<double>(axis.source_size))) {
      throw Error("resize", str("a box inside ", axis.source_size, " pixels"), str("[", axis.from, ", ", axis.to, ")"));
    }
    if (axis.begin < 0 || axis.begin >= axis.end || axis.end > axis.size) {
      throw Error("resize", str("a window inside ", axis.size, " pixels"), str("[", axis.begin, ", ", axis.end, ")"));
    }
  }
}

}  // namespace

Image resize(const Image& source, int64_t width, int64_t height, Filter filter, const ResizeOptions& options) {
  const Window part = options.part.value_or(Window{0, 0, source.width, source.height});
  const Box box = options.box.value_or(Box{0, 0, static_cast<double>(part.width), static_cast<double>(part.height)});
  const Window window = options.window.value_or(Window{0, 0, width, height});
  // Pillow keeps the box in single precision.
  const auto single = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const Axis x_axis{part.width, single(box.left), single(box.right), width, window.left, window.left + window.width};
  const Axis y_axis{part.height, single(box.top), single(box.bottom), height, window.top, window.top + window.height};
  check_part(source, part);
  check(x_axis, y_axis);
  if (changes_nothing(x_axis) && changes_nothing(y_axis)) {
    return crop(source, {part.left + window.left, part.top + window.top, window.width, window.height});
  }
  if (filter == Filter::nearest) return resize_nearest(source, part, x_axis, y_axis);
  return resize_filtered(source, part, x_axis, y_axis, filter);
}

}  // namespace vitrail::image
