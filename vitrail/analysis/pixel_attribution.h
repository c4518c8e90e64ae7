// SPDX-License-Identifier: Apache-2.0
#pragma once
// Attribution of a score y(x), such as the logit of a class, to the pixels of one image x [1, C, H, W] in f32.
#include <array>
#include <cstdint>
#include <functional>

#include "vitrail/tensor/tensor.h"

namespace vitrail::analysis {

// ∂y/∂x at an image [1, C, H, W], of its shape.
using GradientAt = std::function<Tensor(const Tensor& image)>;

// x ⊙ ∂y/∂x (Shrikumar et al. 2017, section 3.2).
Tensor gradient_times_input(const Tensor& image, const GradientAt& gradient);

struct SmoothGradOptions {
  int64_t draws = 25;
  double noise = 0.15;  // standard deviation, as a share of the range of the image's values
  uint64_t seed = 0;    // draw i adds Tensor::randn(shape, seed + i)
};

// The mean gradient at noisy copies of the image (Smilkov et al. 2017, section 2).
Tensor smooth_grad(const Tensor& image, const GradientAt& gradient, const SmoothGradOptions& options = {});

// (x − x₀) ⊙ ∫₀¹ ∂y/∂x(x₀ + a (x − x₀)) da (Sundararajan et al. 2017, eq. 1), by the trapezoidal rule with `steps`
// equal intervals.  The elements sum up to y(x) − y(x₀), but for the error of the rule.
Tensor integrated_gradients(const Tensor& image, const Tensor& baseline, const GradientAt& gradient,
                            int64_t steps = 50);

// Patches of an image, from its upper left corner.
struct PatchGrid {
  std::array<int64_t, 2> grid;   // rows, columns
  std::array<int64_t, 2> patch;  // height, width in pixels
  int64_t count() const { return grid[0] * grid[1]; }
};

// The sum over channels and pixels of each patch: [1, C, H, W] → [rows, columns].
Tensor sum_over_patches(const Tensor& attribution, const PatchGrid& patches);

// Images without content, for integrated gradients and for covering patches: the mean of each channel, and the image
// blurred by a Gaussian of 11 × 11 pixels with a standard deviation of 5 (Petsiuk et al. 2018, RISE), with the border's
// pixels repeated.
Tensor mean_color(const Tensor& image);
Tensor blurred(const Tensor& image);

}  // namespace vitrail::analysis
