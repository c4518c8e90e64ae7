// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_internal.h"

#include <algorithm>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/image/resample_weights_internal.h"
#include "vitrail/kernels/rowwise/resample.h"

namespace vitrail::image {
namespace {

constexpr int64_t kMaxSize = 0x7fffffff;  // as Pillow, whose sizes have 32 bits

kernels::ResampleAxis axis_of(const ResampleWeights& weights) {
  return {static_cast<int64_t>(weights.firsts.size()), weights.taps, weights.firsts.data(), weights.counts.data(),
          weights.weights.data()};
}

kernels::PixelRows rows_of(const ImageView& source, int64_t top, int64_t rows) {
  return {source.row(top), rows, source.width() * source.channels(), source.stride(),
          static_cast<int>(source.channels())};
}

// Rows [top, top + rows) of the source, each resampled along x.
Image resample_rows(const ImageView& source, const ResampleWeights& weights, int64_t top, int64_t rows) {
  Image result = make_image(static_cast<int64_t>(weights.firsts.size()), rows, source.channels());
  kernels::resample_x(rows_of(source, top, rows), axis_of(weights), result.pixels.data());
  return result;
}

// Columns [left, left + width) of the source, resampled along y.
Image resample_columns(const ImageView& source, const ResampleWeights& weights, int64_t left, int64_t width) {
  Image result = make_image(width, static_cast<int64_t>(weights.firsts.size()), source.channels());
  kernels::resample_y(rows_of(source, 0, source.height()), left * source.channels(), result.row_bytes(),
                      axis_of(weights), result.pixels.data());
  return result;
}

// The source positions [first, last) that a pass reads.
struct Extent {
  int64_t first = 0, last = 0;
};

Extent extent_of(const ResampleWeights& weights) {
  return {weights.firsts.front(), weights.firsts.back() + weights.counts.back()};
}

// Shifts the source positions: the new source begins at `position` of the old one.
void rebase(int64_t position, ResampleWeights& weights) {
  for (int64_t& first : weights.firsts) first -= position;
}

Image cropped(const ImageView& source, const Window& window) {
  Image result = make_image(window.width, window.height, source.channels());
  for (int64_t y = 0; y < window.height; ++y) {
    std::memcpy(result.row(y), source.row(window.top + y) + window.left * source.channels(),
                static_cast<size_t>(result.row_bytes()));
  }
  return result;
}

// The source positions of a nearest resize, or −1 outside the source.  Positions are accumulated from the first one, as
// in Pillow, so that they have the same rounding errors.
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

Image resize_nearest(const ImageView& source, const Window& crop, const Axis& x_axis, const Axis& y_axis) {
  const int64_t channels = source.channels();
  const std::vector<int64_t> columns = nearest_positions(x_axis), rows = nearest_positions(y_axis);
  Image result = make_image(x_axis.end - x_axis.begin, y_axis.end - y_axis.begin, channels);
  for (int64_t y = 0; y < result.height; ++y) {
    if (rows[y] < 0) continue;
    const uint8_t* from = source.row(crop.top + rows[y]) + crop.left * channels;
    uint8_t* out = result.row(y);
    for (const int64_t column : columns) {
      for (int64_t c = 0; c < channels; ++c, ++out) {
        if (column >= 0) *out = from[column * channels + c];
      }
    }
  }
  return result;
}

bool changes_nothing(const Axis& axis) {
  return axis.size == axis.source_size && axis.from == 0 && axis.to == static_cast<double>(axis.size);
}

// Pillow 13 begins with the pass along y if the height shrinks by more than twice as many pixels as the width. (Earlier
// versions always begin along x.)  The order matters because the intermediate image has 8 bits.
bool vertical_first(const Axis& x_axis, const Axis& y_axis) {
  const int64_t removed_rows = y_axis.source_size - y_axis.size, removed_columns = x_axis.source_size - x_axis.size;
  return removed_rows > 0 && removed_rows > 2 * removed_columns;
}

// The weights of an axis whose positions begin at `offset` of the source.
ResampleWeights weights_at(int64_t offset, const Axis& axis, Filter filter) {
  ResampleWeights weights = resample_weights(axis, filter);
  rebase(-offset, weights);
  return weights;
}

Image resize_filtered(const ImageView& source, const Window& crop, const Axis& x_axis, const Axis& y_axis,
                      Filter filter) {
  const int64_t width = x_axis.end - x_axis.begin, height = y_axis.end - y_axis.begin;
  if (changes_nothing(y_axis)) {
    return resample_rows(source, weights_at(crop.left, x_axis, filter), crop.top + y_axis.begin, height);
  }
  ResampleWeights y_weights = weights_at(crop.top, y_axis, filter);
  if (changes_nothing(x_axis)) return resample_columns(source, y_weights, crop.left + x_axis.begin, width);
  ResampleWeights x_weights = weights_at(crop.left, x_axis, filter);
  // The first pass computes only what the second one reads.
  if (vertical_first(x_axis, y_axis)) {
    const Extent used = extent_of(x_weights);
    const Image columns = resample_columns(source, y_weights, used.first, used.last - used.first);
    rebase(used.first, x_weights);
    return resample_rows(columns, x_weights, 0, height);
  }
  const Extent used = extent_of(y_weights);
  const Image rows = resample_rows(source, x_weights, used.first, used.last - used.first);
  rebase(used.first, y_weights);
  return resample_columns(rows, y_weights, 0, width);
}

void check_crop(const ImageView& source, const Window& crop) {
  if (source.channels() == 4) throw Error("resize", "an image without alpha", "4 channels");
  const bool inside = crop.left >= 0 && crop.top >= 0 && crop.width > 0 && crop.height > 0 &&
                      crop.width <= source.width() - crop.left && crop.height <= source.height() - crop.top;
  if (!inside) {
    throw Error("resize", str("a crop inside ", source.width(), "×", source.height()),
                str(crop.width, "×", crop.height, " at ", crop.left, ", ", crop.top));
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

Image resize(const ImageView& source, int64_t width, int64_t height, Filter filter, const ResizeOptions& options) {
  const Window crop = options.crop.value_or(Window{0, 0, source.width(), source.height()});
  const Box box = options.box.value_or(Box{0, 0, static_cast<double>(crop.width), static_cast<double>(crop.height)});
  const Window window = options.window.value_or(Window{0, 0, width, height});
  // Pillow keeps the box in single precision.
  const auto single = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const Axis x_axis{crop.width, single(box.left), single(box.right), width, window.left, window.left + window.width};
  const Axis y_axis{crop.height, single(box.top), single(box.bottom), height, window.top, window.top + window.height};
  check_crop(source, crop);
  check(x_axis, y_axis);
  if (changes_nothing(x_axis) && changes_nothing(y_axis)) {
    return cropped(source, {crop.left + window.left, crop.top + window.top, window.width, window.height});
  }
  if (filter == Filter::nearest) return resize_nearest(source, crop, x_axis, y_axis);
  return resize_filtered(source, crop, x_axis, y_axis, filter);
}

}  // namespace vitrail::image
