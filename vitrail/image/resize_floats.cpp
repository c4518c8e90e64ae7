// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_floats_internal.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/image/resample_weights_internal.h"
#include "vitrail/kernels/rowwise/resample.h"

namespace vitrail::image {
namespace {

ResampleWeights weights_of(int64_t source_size, int64_t size, Filter filter) {
  return resample_weights({source_size, 0, static_cast<double>(source_size), size, 0, size}, filter);
}

// Between the centres of two samples, also where the result is smaller; positions have single precision, as in torch.
ResampleWeights two_samples(int64_t source_size, int64_t size) {
  constexpr float kOne = 1 << kernels::kResampleBits;
  ResampleWeights result{.taps = 2, .firsts = {}, .counts = {}, .weights = {}};
  const float scale = static_cast<float>(source_size) / static_cast<float>(size);
  for (int64_t i = 0; i < size; ++i) {
    const float at = std::max(0.0F, scale * (static_cast<float>(i) + 0.5F) - 0.5F);
    const int64_t first = std::min(static_cast<int64_t>(at), source_size - 1);
    const bool last = first + 1 == source_size;
    const auto second = static_cast<int32_t>(std::lround(last ? 0 : kOne * (at - static_cast<float>(first))));
    result.firsts.push_back(first);
    result.counts.push_back(last ? 1 : 2);
    result.weights.insert(result.weights.end(), {static_cast<int32_t>(kOne) - second, second});
  }
  return result;
}

// to [channels] = Σ weight · source, over the taps of one position; a source position begins `step` elements after the
// one before.
template <class T>
void weighted_sum(const ResampleWeights& weights, size_t position, const T* source, int64_t step, int64_t channels,
                  float* to) {
  constexpr float kUnit = 1.0F / (1 << kernels::kResampleBits);
  const int32_t* const taps = weights.weights.data() + static_cast<int64_t>(position) * weights.taps;
  std::fill_n(to, channels, 0.0F);
  for (int64_t t = 0; t < weights.counts[position]; ++t) {
    const float weight = kUnit * static_cast<float>(taps[t]);
    const T* const from = source + (weights.firsts[position] + t) * step;
    for (int64_t c = 0; c < channels; ++c) to[c] += weight * static_cast<float>(from[c]);
  }
}

}  // namespace

std::vector<float> resize_floats(const ImageView& source, int64_t width, int64_t height, Filter filter,
                                 bool antialias) {
  if (width < 1 || height < 1) throw Error("resize", "a size from 1×1", str(width, "×", height));
  if (filter == Filter::nearest) throw Error("resize to floats", "a filter that is not nearest", "nearest");
  if (!antialias && filter != Filter::bilinear)
    throw Error("resize to floats", "bilinear without antialias", name_of(filter));
  const int64_t channels = source.channels(), row = width * channels;
  const auto weights = [&](int64_t from, int64_t to) {
    return antialias ? weights_of(from, to, filter) : two_samples(from, to);
  };
  const ResampleWeights x_weights = weights(source.width(), width), y_weights = weights(source.height(), height);
  std::vector<float> rows(static_cast<size_t>(source.height() * row)), result(static_cast<size_t>(height * row));
  for (int64_t y = 0; y < source.height(); ++y) {
    for (int64_t x = 0; x < width; ++x) {
      weighted_sum(x_weights, static_cast<size_t>(x), source.row(y), channels, channels,
                   rows.data() + y * row + x * channels);
    }
  }
  for (int64_t y = 0; y < height; ++y) {
    weighted_sum(y_weights, static_cast<size_t>(y), rows.data(), row, row, result.data() + y * row);
  }
  return result;
}

}  // namespace vitrail::image
