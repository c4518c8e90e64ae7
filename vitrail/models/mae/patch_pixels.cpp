// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/mae/patch_pixels.h"

#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/ops/dispatch.h"

namespace vitrail::models {
namespace {

constexpr double kVarianceEps = 1e-6;

// function(pixel, mean, deviation) of each pixel.
template <class Function>
Tensor mapped(const Tensor& patches, const PatchStatistics& statistics, const Function& function) {
  const Tensor x = patches.detach().contiguous(), result = Tensor::empty(x.shape(), x.dtype());
  const int64_t pixels = x.size(2);
  ops::dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, x.size(0) * x.size(1), 1 + 16384 / pixels, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T mean = statistics.mean.data<T>()[r], deviation = statistics.deviation.data<T>()[r];
        for (int64_t i = r * pixels; i < (r + 1) * pixels; ++i)
          result.data<T>()[i] = function(x.data<T>()[i], mean, deviation);
      }
    });
  });
  return result;
}

}  // namespace

PatchStatistics patch_statistics(const Tensor& patches) {
  if (patches.rank() != 3 || patches.size(2) < 2)
    throw Error("patch statistics", "patches [B, N, pixels] of at least 2 pixels", patches.shape().to_string());
  const Tensor x = patches.detach().contiguous();
  const int64_t pixels = x.size(2);
  const Shape shape{x.size(0), x.size(1), 1};
  const PatchStatistics result{Tensor::empty(shape, x.dtype()), Tensor::empty(shape, x.dtype())};
  ops::dispatch_compute(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, shape[0] * shape[1], 1 + 16384 / pixels, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const T* const row = x.data<T>() + r * pixels;
        double sum = 0, squares = 0;
        for (int64_t i = 0; i < pixels; ++i) sum += static_cast<double>(row[i]);
        const double mean = sum / static_cast<double>(pixels);
        for (int64_t i = 0; i < pixels; ++i) {
          const double difference = static_cast<double>(row[i]) - mean;
          squares += difference * difference;
        }
        result.mean.data<T>()[r] = static_cast<T>(mean);
        result.deviation.data<T>()[r] =
            static_cast<T>(std::sqrt(squares / static_cast<double>(pixels - 1) + kVarianceEps));
      }
    });
  });
  return result;
}

Tensor normalized_patches(const Tensor& patches, const PatchStatistics& statistics) {
  return mapped(patches, statistics, [](auto x, auto mean, auto deviation) { return (x - mean) / deviation; });
}

Tensor denormalized_patches(const Tensor& patches, const PatchStatistics& statistics) {
  return mapped(patches, statistics, [](auto x, auto mean, auto deviation) { return x * deviation + mean; });
}

Tensor image_of_patches(const Tensor& patches, std::array<int64_t, 2> grid, std::array<int64_t, 2> patch_size) {
  const auto [rows, columns] = grid;
  const auto [height, width] = patch_size;
  const bool fits = patches.rank() == 3 && patches.size(1) == rows * columns && patches.size(2) % (height * width) == 0;
  if (!fits) {
    throw Error("image of patches", str("[B, ", rows * columns, ", C·", height, "·", width, "]"),
                patches.shape().to_string());
  }
  const int64_t channels = patches.size(2) / (height * width);
  return patches.contiguous()
      .view({patches.size(0), rows, columns, channels, height, width})
      .permute({0, 3, 1, 4, 2, 5})
      .reshape({patches.size(0), channels, rows * height, columns * width});
}

PatchIndices masked_patches(const PatchIndices& kept, int64_t patches) {
  PatchIndices masked(kept.size());
  for (size_t b = 0; b < kept.size(); ++b) {
    std::vector<bool> is_kept(static_cast<size_t>(patches));
    for (const int64_t patch : kept[b]) is_kept[static_cast<size_t>(patch)] = true;
    for (int64_t patch = 0; patch < patches; ++patch) {
      if (!is_kept[static_cast<size_t>(patch)]) masked[b].push_back(patch);
    }
  }
  return masked;
}

}  // namespace vitrail::models
