// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/spline_resize_internal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::image {
namespace {

// Values of an image's channels: each row is a line along the axis that is resized.
struct Lines {
  int64_t count = 0, length = 0;
  std::vector<double> values = {};

  Lines(int64_t lines, int64_t n) : count(lines), length(n), values(static_cast<size_t>(lines * n)) {}
  double* line(int64_t i) { return values.data() + i * length; }
  const double* line(int64_t i) const { return values.data() + i * length; }
};

// The index i of a line of n values that is continued by reflection about its first and last value.
int64_t mirrored(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * n - 2, phase = ((i % period) + period) % period;
  return std::min(phase, period - phase);
}

// SciPy's gaussian_filter1d with truncate = 4.
void blur(std::vector<double>& line, double sigma) {
  const auto radius = static_cast<int64_t>(4 * sigma + 0.5), n = static_cast<int64_t>(line.size());
  std::vector<double> weights(static_cast<size_t>(radius + 1));
  double sum = 0;
  for (int64_t i = 0; i <= radius; ++i) {
    weights[static_cast<size_t>(i)] = std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma));
    sum += (i == 0 ? 1 : 2) * weights[static_cast<size_t>(i)];
  }
  const std::vector<double> source = line;
  const auto at = [&](int64_t i) { return source[static_cast<size_t>(mirrored(i, n))]; };
  for (int64_t x = 0; x < n; ++x) {
    double value = weights[0] * at(x);
    for (int64_t i = 1; i <= radius; ++i) value += weights[static_cast<size_t>(i)] * (at(x - i) + at(x + i));
    line[static_cast<size_t>(x)] = value / sum;
  }
}

// Values become the coefficients of the cubic B-spline through them (Unser, Aldroubi and Eden 1993): a causal and an
// anticausal recursive filter with the pole √3 − 2.
void to_coefficients(std::vector<double>& line) {
  const size_t n = line.size();
  if (n < 2) return;
  const double pole = std::sqrt(3.0) - 2.0, gain = (1 - pole) * (1 - 1 / pole);
  for (double& value : line) value *= gain;
  const double last = std::pow(pole, static_cast<double>(n - 1));
  double first = line[0] + last * line[n - 1], power = pole;
  for (size_t i = 1; i + 1 < n; ++i, power *= pole) first += power * (line[i] + last * line[n - 1 - i]);
  line[0] = first / (1 - last * last);
  for (size_t i = 1; i < n; ++i) line[i] += pole * line[i - 1];
  line[n - 1] = (pole * line[n - 2] + line[n - 1]) * pole / (pole * pole - 1);
  for (size_t i = n - 1; i-- > 0;) line[i] = pole * (line[i + 1] - line[i]);
}

// The weights of the coefficients ⌊x⌋ − 1 … ⌊x⌋ + 2 at x, t = x − ⌊x⌋.
std::array<double, 4> spline_weights(double t) {
  const double u = 1 - t;
  return {u * u * u / 6, (4 - 6 * t * t + 3 * t * t * t) / 6, (4 - 6 * u * u + 3 * u * u * u) / 6, t * t * t / 6};
}

// Resizes `count` lines of `from` values; read(i, line) fills line i.
template <class Read>
Lines resized_lines(int64_t count, int64_t from, int64_t length, const Read& read) {
  Lines result(count, length);
  const double factor = static_cast<double>(from) / static_cast<double>(length);
  parallel_for(0, count, 8, [&](int64_t begin, int64_t end) {
    std::vector<double> line(static_cast<size_t>(from));
    for (int64_t i = begin; i < end; ++i) {
      read(i, line.data());
      if (factor > 1) blur(line, (factor - 1) / 2);
      to_coefficients(line);
      for (int64_t x = 0; x < length; ++x) {
        const double position = (static_cast<double>(x) + 0.5) * factor - 0.5;
        const auto cell = static_cast<int64_t>(std::floor(position));
        const std::array<double, 4> weights = spline_weights(position - static_cast<double>(cell));
        double value = 0;
        for (int64_t k = 0; k < 4; ++k) {
          value += weights[static_cast<size_t>(k)] * line[static_cast<size_t>(mirrored(cell - 1 + k, from))];
        }
        result.line(i)[x] = value;
      }
    }
  });
  return result;
}

}  // namespace

Image resize_spline(const ImageView& source, int64_t width, int64_t height) {
  if (width < 1 || height < 1) throw Error("resize", "positive width and height", str(width, "×", height));
  const Image image = to_image(source, source.channels() == 1 ? ColorMode::grey : ColorMode::rgb);
  const auto [min, max] = std::ranges::minmax(image.pixels);
  // [channels · rows][columns], and then [channels · columns][rows].
  const auto read_row = [&](int64_t i, double* line) {
    const uint8_t* const row = image.row(i % image.height) + i / image.height;
    for (int64_t x = 0; x < image.width; ++x) line[x] = row[x * image.channels];
  };
  const Lines wide = resized_lines(image.channels * image.height, image.width, width, read_row);
  const auto read_column = [&](int64_t i, double* line) {
    const int64_t first = i / width * image.height;
    for (int64_t y = 0; y < image.height; ++y) line[y] = wide.line(first + y)[i % width];
  };
  const Lines columns = resized_lines(image.channels * width, image.height, height, read_column);
  Image result = make_image(width, height, image.channels);
  for (int64_t c = 0; c < image.channels; ++c) {
    for (int64_t x = 0; x < width; ++x) {
      const double* const column = columns.line(c * width + x);
      for (int64_t y = 0; y < height; ++y) {
        const double value = std::clamp<double>(column[y], min, max);
        result.row(y)[x * image.channels + c] = static_cast<uint8_t>(value);
      }
    }
  }
  return result;
}

}  // namespace vitrail::image
