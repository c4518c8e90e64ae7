// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/rotary_embedding.h"

#include <cmath>
#include <numbers>

#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/rotary.h"

namespace vitrail::nn {
namespace {

// Axial frequencies θ^(−4j/d) in a random direction per block and head, and at a right angle to it (timm's
// init_random_2d_freqs).
Initializer random_directions(double temperature) {
  return [temperature](Tensor& freqs, uint64_t key) {
    RandomStream random(key);
    const int64_t heads = freqs.size(1) * freqs.size(2), bands = freqs.size(3) / 2;
    Tensor values = Tensor::empty({2, heads, 2, bands}, DType::f64);
    for (int64_t h = 0; h < heads; ++h) {
      const double angle = 2 * std::numbers::pi * random.uniform();
      for (int64_t i = 0; i < 2 * bands; ++i) {
        const double rotated = angle + (i < bands ? 0 : std::numbers::pi / 2);
        const double magnitude = std::pow(temperature, -static_cast<double>(i % bands) / static_cast<double>(bands));
        values.data<double>()[h * 2 * bands + i] = magnitude * std::cos(rotated);
        values.data<double>()[(heads + h) * 2 * bands + i] = magnitude * std::sin(rotated);
      }
    }
    freqs.copy_(values.view(freqs.shape()));
  };
}

std::vector<double> periods_of(const RotaryEmbeddingConfig& config) {
  if (!config.periods.empty()) return config.periods;
  std::vector<double> periods;
  const int64_t bands = config.head_dim / 4;
  for (int64_t j = 0; j < bands; ++j) {
    periods.push_back(std::pow(config.temperature, static_cast<double>(j) / static_cast<double>(bands)));
  }
  return periods;
}

// The coordinates of n patches along axis 0 (y) or 1 (x).
std::vector<double> coordinates(const RotaryEmbeddingConfig& config, size_t axis, int64_t n) {
  std::vector<double> result;
  for (int64_t i = 0; i < n; ++i) {
    const auto index = static_cast<double>(i), count = static_cast<double>(n);
    switch (config.type) {
      case RotaryType::cat: {
        const double scale = config.reference ? static_cast<double>((*config.reference)[axis]) / count : 1;
        result.push_back((index + config.offset) * scale);
        break;
      }
      case RotaryType::dinov3:
        result.push_back(2 * std::numbers::pi * (2 * (index + 0.5 + config.offset) / count - 1));
        break;
      case RotaryType::mixed:
        result.push_back(index);
        break;
    }
  }
  return result;
}

}  // namespace

RotaryEmbedding::RotaryEmbedding(const RotaryEmbeddingConfig& config, const ParamSource& params)
    : Module(params.path()), config_(config) {
  const std::string where = path().empty() ? "rotary embedding" : path();
  if (config.head_dim < 4 || config.head_dim % 4 != 0) {
    throw Error(where, "a head_dim that 4 divides: two axes of pairs", str(config.head_dim));
  }
  if (!config.periods.empty() && static_cast<int64_t>(config.periods.size()) != config.head_dim / 4) {
    throw Error(where, str(config.head_dim / 4, " periods"), str(config.periods.size()));
  }
  if (config.type == RotaryType::mixed) {
    freqs_ = params.get("freqs", {2, config.depth, config.num_heads, config.head_dim / 2},
                        random_directions(config.temperature));
  }
}

// The first and the second coordinate of every patch, f64 [2, patches].
Tensor RotaryEmbedding::positions(const std::array<int64_t, 2>& grid) const {
  const std::vector<double> y = coordinates(config_, 0, grid[0]), x = coordinates(config_, 1, grid[1]);
  const int64_t patches = grid[0] * grid[1];
  const Tensor result = Tensor::empty({2, patches}, DType::f64);
  double* const first = result.data<double>();
  double* const second = first + patches;
  for (int64_t p = 0; p < patches; ++p) {
    (config_.x_first ? second : first)[p] = y[static_cast<size_t>(p / grid[1])];
    (config_.x_first ? first : second)[p] = x[static_cast<size_t>(p % grid[1])];
  }
  return result;
}

// [1, 1, patches, d/2]: each coordinate divided by each period.
Tensor RotaryEmbedding::axial_angles(const Tensor& positions) const {
  const std::vector<double> periods = periods_of(config_);
  const int64_t patches = positions.size(1), bands = config_.head_dim / 4;
  const Tensor angles = Tensor::empty({1, 1, patches, 2 * bands}, DType::f64);
  for (int64_t p = 0; p < patches; ++p) {
    for (int64_t i = 0; i < 2 * bands; ++i) {
      const double at = positions.data<double>()[i / bands * patches + p];
      angles.data<double>()[p * 2 * bands + i] = at / periods[static_cast<size_t>(i % bands)];
    }
  }
  return angles;
}

// [1, H, patches, d/2]: the products of the coordinates with the block's frequencies, summed over the axes.
Tensor RotaryEmbedding::mixed_angles(const Tensor& positions, int64_t block) const {
  const int64_t patches = positions.size(1), pairs = config_.head_dim / 2;
  auto product = [&](int axis) {
    const Tensor frequencies = freqs_.select(0, axis).select(0, block).view({1, config_.num_heads, 1, pairs});
    return ops::mul(positions.select(0, axis).to(freqs_.dtype()).view({patches, 1}), frequencies);
  };
  return ops::add(product(0), product(1));
}

std::vector<Tensor> RotaryEmbedding::tables(const std::array<int64_t, 2>& grid, DType dtype) const {
  const Tensor at = positions(grid);
  if (config_.type != RotaryType::mixed) return {ops::rotary_table(axial_angles(at)).to(dtype)};
  std::vector<Tensor> result;
  for (int64_t block = 0; block < config_.depth; ++block) {
    result.push_back(ops::rotary_table(mixed_angles(at, block)).to(dtype));
  }
  return result;
}

}  // namespace vitrail::nn
