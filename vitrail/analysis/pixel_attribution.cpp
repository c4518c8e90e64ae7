// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/pixel_attribution.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace vitrail::analysis {
namespace {

// A weighted sum of tensors of one shape, in double precision.
class WeightedSum {
 public:
  explicit WeightedSum(const Shape& shape) : sum_(Tensor::zeros(shape, DType::f64)) {}

  void add(const Tensor& tensor, double weight) {
    const Tensor addend = tensor.contiguous();
    for (int64_t i = 0; i < sum_.numel(); ++i)
      sum_.data<double>()[i] += weight * static_cast<double>(addend.data<float>()[i]);
  }
  Tensor result() const { return sum_.to(DType::f32); }

 private:
  Tensor sum_;
};

// One element of the result for each pair of elements.
template <class Function>
Tensor elementwise(const Tensor& a, const Tensor& b, const Function& function) {
  const Tensor left = a.contiguous(), right = b.contiguous(), result = Tensor::empty(a.shape());
  for (int64_t i = 0; i < result.numel(); ++i)
    result.data<float>()[i] = function(left.data<float>()[i], right.data<float>()[i]);
  return result;
}

// Along the rows or, with `vertical`, along the columns of a plane.
void blur_plane(const std::vector<double>& taps, int64_t height, int64_t width, bool vertical, const float* from,
                float* to) {
  const auto reach = static_cast<int64_t>(taps.size()) / 2;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      double sum = 0;
      for (int64_t tap = -reach; tap <= reach; ++tap) {
        const int64_t row = vertical ? std::clamp<int64_t>(y + tap, 0, height - 1) : y;
        const int64_t column = vertical ? x : std::clamp<int64_t>(x + tap, 0, width - 1);
        sum += taps[static_cast<size_t>(tap + reach)] * static_cast<double>(from[row * width + column]);
      }
      to[y * width + x] = static_cast<float>(sum);
    }
  }
}

}  // namespace

Tensor gradient_times_input(const Tensor& image, const GradientAt& gradient) {
  return elementwise(image, gradient(image), [](float x, float slope) { return x * slope; });
}

Tensor smooth_grad(const Tensor& image, const GradientAt& gradient, const SmoothGradOptions& options) {
  const Tensor x = image.contiguous();
  const auto [low, high] = std::minmax_element(x.data<float>(), x.data<float>() + x.numel());
  const auto deviation = static_cast<float>(options.noise * static_cast<double>(*high - *low));
  WeightedSum sum(x.shape());
  for (int64_t draw = 0; draw < options.draws; ++draw) {
    const Tensor noise = Tensor::randn(x.shape(), options.seed + static_cast<uint64_t>(draw));
    const Tensor noisy = elementwise(x, noise, [=](float pixel, float z) { return pixel + deviation * z; });
    sum.add(gradient(noisy), 1.0 / static_cast<double>(options.draws));
  }
  return sum.result();
}

Tensor integrated_gradients(const Tensor& image, const Tensor& baseline, const GradientAt& gradient, int64_t steps) {
  WeightedSum integral(image.shape());
  for (int64_t step = 0; step <= steps; ++step) {
    const auto share = static_cast<float>(step) / static_cast<float>(steps);
    const Tensor between =
        elementwise(image, baseline, [=](float x, float from) { return share * x + (1 - share) * from; });
    integral.add(gradient(between), (step == 0 || step == steps ? 0.5 : 1.0) / static_cast<double>(steps));
  }
  const Tensor difference = elementwise(image, baseline, [](float x, float from) { return x - from; });
  return elementwise(difference, integral.result(), [](float change, float slope) { return change * slope; });
}

Tensor sum_over_patches(const Tensor& attribution, const PatchGrid& patches) {
  const Tensor values = attribution.contiguous(), result = Tensor::empty({patches.grid[0], patches.grid[1]});
  const int64_t channels = values.size(1), height = values.size(2), width = values.size(3);
  for (int64_t at = 0; at < patches.count(); ++at) {
    const int64_t top = at / patches.grid[1] * patches.patch[0], left = at % patches.grid[1] * patches.patch[1];
    double sum = 0;
    for (int64_t row = 0; row < channels * patches.patch[0]; ++row) {
      const int64_t channel = row / patches.patch[0], y = top + row % patches.patch[0];
      const float* const pixels = values.data<float>() + (channel * height + y) * width + left;
      for (int64_t x = 0; x < patches.patch[1]; ++x) sum += static_cast<double>(pixels[x]);
    }
    result.data<float>()[at] = static_cast<float>(sum);
  }
  return result;
}

Tensor mean_color(const Tensor& image) {
  const Tensor x = image.contiguous(), result = Tensor::empty(x.shape());
  const int64_t pixels = x.size(2) * x.size(3);
  for (int64_t channel = 0; channel < x.size(1); ++channel) {
    const float* const from = x.data<float>() + channel * pixels;
    double sum = 0;
    for (int64_t i = 0; i < pixels; ++i) sum += static_cast<double>(from[i]);
    std::fill_n(result.data<float>() + channel * pixels, pixels, static_cast<float>(sum / static_cast<double>(pixels)));
  }
  return result;
}

Tensor blurred(const Tensor& image) {
  constexpr int64_t kTaps = 11;
  constexpr double kDeviation = 5;
  std::vector<double> taps(kTaps);
  double total = 0;
  for (int64_t i = 0; i < kTaps; ++i) {
    const double distance = static_cast<double>(i - kTaps / 2) / kDeviation;
    total += taps[static_cast<size_t>(i)] = std::exp(-0.5 * distance * distance);
  }
  for (double& tap : taps) tap /= total;
  const Tensor x = image.contiguous(), result = Tensor::empty(x.shape());
  const int64_t height = x.size(2), width = x.size(3);
  std::vector<float> rows(static_cast<size_t>(height * width));
  for (int64_t channel = 0; channel < x.size(1); ++channel) {
    blur_plane(taps, height, width, false, x.data<float>() + channel * height * width, rows.data());
    blur_plane(taps, height, width, true, rows.data(), result.data<float>() + channel * height * width);
  }
  return result;
}

}  // namespace vitrail::analysis
