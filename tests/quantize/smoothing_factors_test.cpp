// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/quantize/smoothing_factors_internal.h"

namespace vitrail::quantize {
namespace {

constexpr int64_t kRows = 300, kIn = 64, kOut = 48;

// Channels of different ranges, some with outliers, as in real activations.
Tensor activations() {
  const Tensor x = Tensor::randn({kRows, kIn}, 1);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t channel = i % kIn;
    x.data<float>()[i] *= std::exp(0.03f * static_cast<float>(channel));
    if (channel % 9 == 0 && i % 7 == 0) x.data<float>()[i] *= 6;
  }
  return x;
}

Tensor linear(const Tensor& x, const Tensor& weight, kernels::Precision precision) {
  const kernels::PackedLinear packed(weight.data<float>(), nullptr, kOut, kIn, precision);
  const Tensor y = Tensor::empty({kRows, kOut});
  std::vector<std::byte> scratch(packed.scratch_bytes({.count = kRows}) + 64);
  auto* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
  packed.run({x.data<float>(), kIn}, {y.data<float>(), kOut}, {.count = kRows}, {}, aligned);
  return y;
}

// The squared L2 error of the int8 layer (x / s) (W · s)ᵀ.
double int8_error(const Tensor& x, const Tensor& weight, const std::vector<float>& factors) {
  const Tensor smoothed_x = x.clone(), smoothed_weight = weight.clone();
  for (int64_t i = 0; i < x.numel(); ++i) smoothed_x.data<float>()[i] /= factors[i % kIn];
  for (int64_t i = 0; i < weight.numel(); ++i) smoothed_weight.data<float>()[i] *= factors[i % kIn];
  const Tensor got = linear(smoothed_x, smoothed_weight, kernels::Precision::int8),
               want = linear(x, weight, kernels::Precision::fp32);
  double squares = 0;
  for (int64_t i = 0; i < got.numel(); ++i) squares += std::pow(got.data<float>()[i] - want.data<float>()[i], 2);
  return squares;
}

InputSample sample_of(const Tensor& x) {
  return {std::vector<float>(x.data<float>(), x.data<float>() + x.numel()),
          std::vector<float>(x.data<float>(), x.data<float>() + x.numel())};
}

std::vector<float> max_per_column(const Tensor& x) {
  std::vector<float> max(kIn);
  for (int64_t i = 0; i < x.numel(); ++i) max[i % kIn] = std::max(max[i % kIn], std::abs(x.data<float>()[i]));
  return max;
}

// Equation 4 of the SmoothQuant paper with α = ½.
std::vector<float> smooth_quant_factors(const Tensor& x, const Tensor& weight) {
  const std::vector<float> max_x = max_per_column(x), max_weight = max_per_column(weight);
  std::vector<float> factors(kIn);
  for (int64_t c = 0; c < kIn; ++c) factors[c] = std::sqrt(max_x[c] / max_weight[c]);
  return factors;
}

TEST(SmoothingFactors, HaveLessErrorThanSmoothQuantsAndThanNone) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  const double error = int8_error(x, weight, smoothing_factors(sample_of(x), weight));
  EXPECT_LT(error, 0.8 * int8_error(x, weight, std::vector<float>(kIn, 1.0f)));
  EXPECT_LT(error, 0.9 * int8_error(x, weight, smooth_quant_factors(x, weight)));
}

// Rounding errors of a weight are multiplied by d / s, so a channel of smaller d needs a smaller factor.
TEST(SmoothingFactors, AreSmallerForAChannelWithSmallCenteredActivations) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  InputSample sample = sample_of(x);
  const auto before = smoothing_factors(sample, weight);
  constexpr int64_t kChannel = 3;
  for (size_t i = kChannel; i < sample.centered.size(); i += kIn) sample.centered[i] *= 0.01f;
  const auto after = smoothing_factors(sample, weight);
  const auto relative_to_mean = [](const std::vector<float>& factors) {
    double mean_log = 0;
    for (int64_t c = 0; c < kIn; ++c) mean_log += std::log(factors[c]) / kIn;
    return std::log(factors[kChannel]) - mean_log;
  };
  EXPECT_LT(relative_to_mean(after), relative_to_mean(before));
}

TEST(SmoothingFactors, AreOneForAChannelOfZeros) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  for (int64_t t = 0; t < kRows; ++t) x.data<float>()[t * kIn + 5] = 0;
  for (int64_t r = 0; r < kOut; ++r) weight.data<float>()[r * kIn + 11] = 0;
  const std::vector<float> factors = smoothing_factors(sample_of(x), weight);
  EXPECT_EQ(factors[5], 1);
  EXPECT_EQ(factors[11], 1);
  EXPECT_TRUE(std::all_of(factors.begin(), factors.end(), [](float s) { return s > 0 && std::isfinite(s); }));
}

// The expected error of the comment in smoothing_factors_internal.h; GPTQ's errors are 0.6 of those of rounding to
// nearest.
double expected_error(const InputSample& sample, const Tensor& weight, const std::vector<double>& s) {
  const size_t in = s.size(), out = static_cast<size_t>(weight.size(0));
  double token_scales = 0, row_scales = 0, weights = 0, inputs = 0;
  for (size_t t = 0; t < sample.activations.size(); t += in) {
    double min = 0, max = 0;
    for (size_t c = 0; c < in; ++c) {
      min = std::min(min, sample.activations[t + c] / s[c]);
      max = std::max(max, sample.activations[t + c] / s[c]);
      inputs += std::pow(sample.centered[t + c] / s[c], 2);
    }
    token_scales += std::pow((max - min) / 255, 2);
  }
  for (size_t r = 0; r < out; ++r) {
    double max = 0;
    for (size_t c = 0; c < in; ++c) {
      const double value = weight.data<float>()[r * in + c] * s[c];
      max = std::max(max, std::abs(value));
      weights += value * value;
    }
    row_scales += std::pow(max / 127, 2);
  }
  return token_scales * weights + 0.6 * row_scales * inputs;
}

// Three channels have two ratios of factors: a grid over both tells the smallest error.
TEST(SmoothingFactors, MinimizeTheExpectedError) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    const Tensor x = Tensor::randn({9, 3}, seed), d = Tensor::randn({9, 3}, seed + 10),
                 weight = Tensor::randn({5, 3}, seed + 20);
    for (int64_t t = 0; t < 9; ++t) {
      x.data<float>()[3 * t + 1] *= 4;
      d.data<float>()[3 * t + 2] *= 0.3F;
    }
    const InputSample sample{std::vector<float>(x.data<float>(), x.data<float>() + 27),
                             std::vector<float>(d.data<float>(), d.data<float>() + 27)};
    const std::vector<float> factors = smoothing_factors(sample, weight);
    double smallest = std::numeric_limits<double>::infinity();
    for (double a = -3; a <= 3; a += 0.04) {
      for (double b = -3; b <= 3; b += 0.04) {
        smallest = std::min(smallest, expected_error(sample, weight, {1, std::exp(a), std::exp(b)}));
      }
    }
    EXPECT_LE(expected_error(sample, weight, {factors[0], factors[1], factors[2]}), 1.01 * smallest) << seed;
  }
}

// Where two channels share a maximum, Adam does not come to rest: it leaves the best factors and passes them again.
TEST(SmoothingFactors, AreTheBestOfTheSearchAndNotItsLast) {
  const Tensor weight = Tensor::from<float>({1, 2}, {1, 1});
  EXPECT_EQ(smoothing_factors({{1, 1}, {1, 1}}, weight), (std::vector<float>{1, 1})) << "those of the start";
  const InputSample sample{{1, 0.2F}, {1, 1}};
  const std::vector<float> factors = smoothing_factors(sample, weight);
  const double smallest = expected_error(sample, weight, {1, 1});
  EXPECT_LT(smallest, expected_error(sample, weight, {1, 1.001}));
  EXPECT_LT(smallest, expected_error(sample, weight, {1, 0.999}));
  EXPECT_LT(expected_error(sample, weight, {factors[0], factors[1]}), 1.001 * smallest);
}

// One channel has nothing to balance: the factor stays at the start of the search.
TEST(SmoothingFactors, BeginAtSmoothQuants) {
  const InputSample sample{{-8, 2, 4}, {1, 2, 3}};
  EXPECT_NEAR(smoothing_factors(sample, Tensor::from<float>({2, 1}, {1, -2})).at(0), 2, 1e-5);
  EXPECT_NEAR(smoothing_factors({{-0.5F, 0.25F}, {1, 2}}, Tensor::from<float>({1, 1}, {8})).at(0), 0.25, 1e-5);
}

}  // namespace
}  // namespace vitrail::quantize
