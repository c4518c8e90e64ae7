// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_plane.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::image {
namespace {

constexpr size_t kTaps = 4;

// The weighted source positions of a target position.
struct Taps {
  std::array<int64_t, kTaps> at;
  std::array<float, kTaps> weight;
};

// The cubic convolution kernel of Keys 1981, "Cubic convolution interpolation for digital image processing".
float cubic(float x) {
  constexpr float a = -0.75F;
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

std::vector<Taps> taps_of(int64_t from, int64_t to) {
  std::vector<Taps> all(static_cast<size_t>(to));
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  for (size_t i = 0; i < all.size(); ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5) - 0.5, low = std::floor(centre);
    for (size_t t = 0; t < kTaps; ++t) {
      const double at = low - 1 + static_cast<double>(t);
      all[i].at[t] = std::clamp(static_cast<int64_t>(at), int64_t{0}, from - 1);
      all[i].weight[t] = cubic(static_cast<float>(centre - at));
    }
  }
  return all;
}

}  // namespace

Tensor resize_plane(const Tensor& x, int64_t height, int64_t width) {
  if (x.rank() != 2 || x.numel() == 0 || height < 1 || width < 1) {
    throw Error("resize_plane", "a plane [h, w] and a target, all sizes at least 1",
                str(x.shape(), " to ", height, "×", width));
  }
  const Tensor source = x.to(DType::f32).contiguous(), result = Tensor::empty({height, width});
  const int64_t from_width = x.size(1);
  const std::vector<Taps> rows = taps_of(x.size(0), height), columns = taps_of(from_width, width);
  parallel_for(0, height, 1 + 16384 / width, [&](int64_t first, int64_t last) {
    std::vector<float> blend(static_cast<size_t>(from_width));
    for (int64_t y = first; y < last; ++y) {
      const auto& [at, weight] = rows[static_cast<size_t>(y)];
      std::array<const float*, kTaps> from;
      for (size_t t = 0; t < kTaps; ++t) from[t] = source.data<float>() + at[t] * from_width;
      for (size_t i = 0; i < blend.size(); ++i)
        blend[i] = weight[0] * from[0][i] + weight[1] * from[1][i] + weight[2] * from[2][i] + weight[3] * from[3][i];
      float* const to = result.data<float>() + y * width;
      for (size_t i = 0; i < columns.size(); ++i) {
        const Taps& taps = columns[i];
        to[i] = taps.weight[0] * blend[static_cast<size_t>(taps.at[0])] +
                taps.weight[1] * blend[static_cast<size_t>(taps.at[1])] +
                taps.weight[2] * blend[static_cast<size_t>(taps.at[2])] +
                taps.weight[3] * blend[static_cast<size_t>(taps.at[3])];
      }
    }
  });
  return result;
}

}  // namespace vitrail::image
