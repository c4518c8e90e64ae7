// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/gaussian.h"

#include <cmath>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"

namespace vitrail::image {
namespace {

constexpr double kTruncate = 4;  // in units of σ
constexpr int64_t kRowsPerTask = 16;

// The weights of offsets 0 … radius; those of negative offsets are the same.
std::vector<float> half_kernel(double sigma, int64_t radius) {
  std::vector<double> weights;
  double sum = 0;
  for (int64_t i = 0; i <= radius; ++i) {
    const double offset = static_cast<double>(i) / sigma;
    weights.push_back(std::exp(-0.5 * offset * offset));
    sum += (i == 0 ? 1 : 2) * weights.back();
  }
  std::vector<float> kernel;
  for (const double weight : weights) kernel.push_back(static_cast<float>(weight / sum));
  return kernel;
}

// The index in [0, n) that stands for i: d c b a | a b c d | d c b a.
int64_t mirrored(int64_t i, int64_t n) {
  i = ((i % (2 * n)) + 2 * n) % (2 * n);
  return i < n ? i : 2 * n - 1 - i;
}

void smooth_columns(const float* from, int64_t height, int64_t width, const std::vector<float>& kernel, float* to) {
  parallel_for(0, height, kRowsPerTask, [&](int64_t first, int64_t last) {
    for (int64_t y = first; y < last; ++y) {
      float* const out = to + y * width;
      for (int64_t x = 0; x < width; ++x) out[x] = kernel[0] * from[y * width + x];
      for (int64_t i = 1; i < std::ssize(kernel); ++i) {
        const float* const above = from + mirrored(y - i, height) * width;
        const float* const below = from + mirrored(y + i, height) * width;
        for (int64_t x = 0; x < width; ++x) out[x] += kernel[static_cast<size_t>(i)] * (above[x] + below[x]);
      }
    }
  });
}

void smooth_rows(int64_t height, int64_t width, const std::vector<float>& kernel, float* plane) {
  const int64_t radius = std::ssize(kernel) - 1;
  parallel_for(0, height, kRowsPerTask, [&](int64_t first, int64_t last) {
    std::vector<float> row(static_cast<size_t>(width + 2 * radius));
    for (int64_t y = first; y < last; ++y) {
      float* const out = plane + y * width;
      for (int64_t x = -radius; x < width + radius; ++x) row[static_cast<size_t>(x + radius)] = out[mirrored(x, width)];
      const float* const center = row.data() + radius;
      for (int64_t x = 0; x < width; ++x) out[x] = kernel[0] * center[x];
      for (int64_t i = 1; i <= radius; ++i) {
        for (int64_t x = 0; x < width; ++x) out[x] += kernel[static_cast<size_t>(i)] * (center[x - i] + center[x + i]);
      }
    }
  });
}

}  // namespace

Tensor gaussian_filter(const Tensor& plane, double sigma, std::optional<int64_t> radius) {
  if (plane.shape().rank() != 2) throw Error("gaussian_filter", "a plane [height, width]", str(plane.shape()));
  if (!(sigma > 0) || !std::isfinite(sigma)) throw Error("sigma", "a number above 0", str(sigma));
  const int64_t height = plane.size(0), width = plane.size(1);
  const std::vector<float> kernel = half_kernel(sigma, radius.value_or(static_cast<int64_t>(kTruncate * sigma + 0.5)));
  const Tensor from = plane.contiguous(), to = Tensor::empty({height, width});
  if (to.numel() == 0) return to;
  smooth_columns(from.data<float>(), height, width, kernel, to.data<float>());
  smooth_rows(height, width, kernel, to.data<float>());
  return to;
}

}  // namespace vitrail::image
