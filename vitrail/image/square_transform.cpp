// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/square_transform.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/image/normalize_internal.h"

namespace vitrail::image {
namespace {

// A position of the result is the weighted sum of neighbours in the source.
struct SquareTaps {
  int64_t first = 0;
  std::vector<float> weights = {};
};

// The index i of a line of n values that is continued by reflection about its first and last value.
int64_t reflected_index(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * n - 2, phase = ((i % period) + period) % period;
  return std::min(phase, period - phase);
}

// The weights of offsets 0 … radius, which end at 4 σ; those of negative offsets are the same.
std::vector<double> half_gaussian(double sigma) {
  std::vector<double> weights{1};
  double sum = 1;
  for (int64_t i = 1; i <= static_cast<int64_t>(4 * sigma + 0.5); ++i) {
    weights.push_back(std::exp(-0.5 * static_cast<double>(i * i) / (sigma * sigma)));
    sum += 2 * weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

// Both steps are linear: their weights are multiplied.  They are not negative and have the sum 1, so that results stay
// in the source's range.
std::vector<SquareTaps> square_taps(int64_t from, int64_t to) {
  const double factor = static_cast<double>(from) / static_cast<double>(to);
  const std::vector<double> gaussian = half_gaussian(std::max(0.0, (factor - 1) / 2));
  const int64_t radius = std::ssize(gaussian) - 1;
  std::vector<SquareTaps> taps(static_cast<size_t>(to));
  std::vector<double> line(static_cast<size_t>(from));
  for (int64_t i = 0; i < to; ++i) {
    const double position = (static_cast<double>(i) + 0.5) * factor - 0.5;
    const auto cell = static_cast<int64_t>(std::floor(position));
    const double right = position - static_cast<double>(cell);
    int64_t low = from, high = -1;
    for (int64_t side = 0; side < 2; ++side) {
      const int64_t center = reflected_index(cell + side, from);
      for (int64_t offset = -radius; offset <= radius; ++offset) {
        const int64_t at = reflected_index(center + offset, from);
        line[static_cast<size_t>(at)] +=
            (side == 0 ? 1 - right : right) * gaussian[static_cast<size_t>(std::abs(offset))];
        low = std::min(low, at);
        high = std::max(high, at);
      }
    }
    SquareTaps& of_position = taps[static_cast<size_t>(i)];
    of_position.first = low;
    for (int64_t at = low; at <= high; ++at)
      of_position.weights.push_back(static_cast<float>(std::exchange(line[static_cast<size_t>(at)], 0)));
  }
  return taps;
}

// to [channels] = Σ weight · source over the positions below `length`: those behind are black.  A source position
// begins `step` elements after the one before.
template <class T>
void add_taps(const SquareTaps& taps, const T* source, int64_t length, int64_t step, int64_t channels, float* to) {
  std::fill_n(to, channels, 0.0F);
  const int64_t count = std::min(std::ssize(taps.weights), length - taps.first);
  for (int64_t t = 0; t < count; ++t) {
    const float weight = taps.weights[static_cast<size_t>(t)];
    const T* const from = source + (taps.first + t) * step;
    for (int64_t c = 0; c < channels; ++c) to[c] += weight * static_cast<float>(from[c]);
  }
}

// Values [size, size, channels] from 0 to 255.
std::vector<float> resized_square(const ImageView& source, int64_t size) {
  constexpr int64_t kRowsPerTask = 8;
  const int64_t channels = source.channels();
  const std::vector<SquareTaps> taps = square_taps(std::max(source.width(), source.height()), size);
  int64_t columns = 0;  // those that the image reaches: a tall one needs no memory for others
  while (columns < size && taps[static_cast<size_t>(columns)].first < source.width()) ++columns;
  const int64_t row = columns * channels;
  std::vector<float> rows(static_cast<size_t>(source.height() * row)),
      result(static_cast<size_t>(size * size * channels));
  parallel_for(0, source.height(), kRowsPerTask, [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y) {
      for (int64_t x = 0; x < columns; ++x)
        add_taps(taps[static_cast<size_t>(x)], source.row(y), source.width(), channels, channels,
                 rows.data() + y * row + x * channels);
    }
  });
  parallel_for(0, size, kRowsPerTask, [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y)
      add_taps(taps[static_cast<size_t>(y)], rows.data(), source.height(), row, row,
               result.data() + y * size * channels);
  });
  return result;
}

}  // namespace

Tensor apply_to_square(const ImageView& source, const EvalTransform& transform) {
  if (source.channels() == 4) return apply_to_square(to_image(source, ColorMode::rgb), transform);
  check_statistics(transform, source.channels());
  const auto [height, width] = output_size(transform, source.width(), source.height());
  if (height != width) throw Error("transform", "a square", str(width, "×", height));
  const Tensor result = Tensor::empty({source.channels(), height, width});
  normalize_floats(transform, resized_square(source, height), source.channels(), source.format() == PixelFormat::bgr,
                   result.data<float>());
  return result;
}

}  // namespace vitrail::image
