#include "vitrail/image/resize.h"

#include <algorithm>
#include <cstring>

#include "vitrail/base/error.h"
#include "vitrail/image/resample_weights.h"

namespace vitrail::image {
namespace {

uint8_t rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

constexpr int64_t kMaxSize = 0x7fffffff;  // Pillow's sizes are 32-bit too
constexpr int32_t kHalf = 1 << (kWeightBits - 1);

template <int kChannels>
void resample_row(const uint8_t* source, const ResampleWeights& x_weights, uint8_t* out) {
  for (size_t x = 0; x < x_weights.firsts.size(); ++x) {
    const uint8_t* pixel = source + x_weights.firsts[x] * kChannels;
    const int32_t* weights = x_weights.weights.data() + static_cast<int64_t>(x) * x_weights.taps;
    int32_t sums[kChannels];
    for (int32_t& sum : sums) sum = kHalf;
    for (int64_t tap = 0; tap < x_weights.counts[x]; ++tap) {
      for (int c = 0; c < kChannels; ++c) sums[c] += *pixel++ * weights[tap];
    }
    for (const int32_t sum : sums) *out++ = rounded(sum);
  }
}

// Part of the picture that the passes count in: the pixel at (left, top) of it is the first one of `image`.
struct Part {
  const Image& image;
  int64_t left = 0, top = 0;
};

// Rows [top, top + rows) of the picture, each resampled along x.
Image resample_rows(const Part& source, const ResampleWeights& x_weights, int64_t top, int64_t rows) {
  Image result = make_image(static_cast<int64_t>(x_weights.firsts.size()), rows, source.image.channels);
  const auto resample = result.channels == 3 ? resample_row<3> : resample_row<1>;
  for (int64_t y = 0; y < rows; ++y) {
    resample(source.image.row(top + y - source.top) - source.left * result.channels, x_weights, result.row(y));
  }
  return result;
}

// Columns [left, left + width) of the picture, resampled along y: each row is a weighted sum of rows.
Image resample_columns(const Part& source, const ResampleWeights& y_weights, int64_t left, int64_t width) {
  Image result = make_image(width, static_cast<int64_t>(y_weights.firsts.size()), source.image.channels);
  const int64_t bytes = result.row_bytes();
  std::vector<int32_t> sums(bytes);
  for (int64_t y = 0; y < result.height; ++y) {
    const int32_t* weights = y_weights.weights.data() + y * y_weights.taps;
    std::fill(sums.begin(), sums.end(), kHalf);
    for (int64_t tap = 0; tap < y_weights.counts[y]; ++tap) {
      const uint8_t* row =
          source.image.row(y_weights.firsts[y] + tap - source.top) + (left - source.left) * result.channels;
      for (int64_t i = 0; i < bytes; ++i) sums[i] += row[i] * weights[tap];
    }
    uint8_t* out = result.row(y);
    for (int64_t i = 0; i < bytes; ++i) out[i] = rounded(sums[i]);
  }
  return result;
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

Image resize_nearest(const Image& source, const Axis& x_axis, const Axis& y_axis) {
  const std::vector<int64_t> columns = nearest_positions(x_axis), rows = nearest_positions(y_axis);
  Image result = make_image(x_axis.end - x_axis.begin, y_axis.end - y_axis.begin, source.channels);
  for (int64_t y = 0; y < result.height; ++y) {
    if (rows[y] < 0) continue;
    const uint8_t* from = source.row(rows[y]);
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

Image resize_filtered(const Image& source, const Axis& x_axis, const Axis& y_axis, Filter filter) {
  const int64_t width = x_axis.end - x_axis.begin, height = y_axis.end - y_axis.begin;
  if (changes_nothing(y_axis)) {
    return resample_rows(Part{source, 0, 0}, resample_weights(x_axis, filter), y_axis.begin, height);
  }
  const ResampleWeights y_weights = resample_weights(y_axis, filter);
  if (changes_nothing(x_axis)) return resample_columns(Part{source, 0, 0}, y_weights, x_axis.begin, width);
  const ResampleWeights x_weights = resample_weights(x_axis, filter);
  // The first pass makes only what the second one reads.
  if (columns_first(x_axis, y_axis)) {
    const int64_t left = x_weights.firsts.front(), right = x_weights.firsts.back() + x_weights.counts.back();
    const Image columns = resample_columns(Part{source, 0, 0}, y_weights, left, right - left);
    return resample_rows({columns, left, 0}, x_weights, 0, height);
  }
  const int64_t top = y_weights.firsts.front(), bottom = y_weights.firsts.back() + y_weights.counts.back();
  const Image rows = resample_rows(Part{source, 0, 0}, x_weights, top, bottom - top);
  return resample_columns({rows, 0, top}, y_weights, 0, width);
}

void check(const Image& source, const Axis& x_axis, const Axis& y_axis) {
  check_image(source, "resize");
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
  const Box box =
      options.box.value_or(Box{0, 0, static_cast<double>(source.width), static_cast<double>(source.height)});
  const Window window = options.window.value_or(Window{0, 0, width, height});
  // Pillow keeps the box in single precision.
  const auto single = [](double x) { return static_cast<double>(static_cast<float>(x)); };
  const Axis x_axis{source.width, single(box.left), single(box.right), width, window.left, window.left + window.width};
  const Axis y_axis{source.height, single(box.top), single(box.bottom), height, window.top, window.top + window.height};
  check(source, x_axis, y_axis);
  if (changes_nothing(x_axis) && changes_nothing(y_axis)) return crop(source, window);
  if (filter == Filter::nearest) return resize_nearest(source, x_axis, y_axis);
  return resize_filtered(source, x_axis, y_axis, filter);
}

}  // namespace vitrail::image
