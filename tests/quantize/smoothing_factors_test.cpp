// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/smoothing_factors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::quantize {
namespace {

constexpr int64_t kRows = 300, kIn = 64, kOut = 48;

// Channels of different magnitude, some with outliers, as in real activations.
Tensor activations() {
  const Tensor x = Tensor::randn({kRows, kIn}, 1);
  for (int64_t i = 0; i < x.numel(); ++i) {
    const int64_t channel = i % kIn;
    x.data<float>()[i] *= std::exp(0.03f * static_cast<float>(channel));
    if (channel % 9 == 0 && i % 7 == 0) x.data<float>()[i] *= 6;
  }
  return x;
}

// The squared error of the int8 GEMM of x / s and W · s against the fp32 GEMM of x and W.
double int8_error(const Tensor& x, const Tensor& weight, const std::vector<float>& factors) {
  const Tensor divided = x.clone(), multiplied = weight.clone();
  for (int64_t i = 0; i < x.numel(); ++i) divided.data<float>()[i] /= factors[i % kIn];
  for (int64_t i = 0; i < weight.numel(); ++i) multiplied.data<float>()[i] *= factors[i % kIn];
  const auto multiply = [&](const Tensor& input, const Tensor& w, kernels::Precision precision) {
    const kernels::PackedLinear linear(w.data<float>(), nullptr, kOut, kIn, precision);
    const Tensor y = Tensor::empty({kRows, kOut});
    std::vector<std::byte> scratch(linear.scratch_bytes({.count = kRows}) + 64);
    auto* const aligned = scratch.data() + (64 - reinterpret_cast<uintptr_t>(scratch.data()) % 64) % 64;
    linear.run({input.data<float>(), kIn}, {y.data<float>(), kOut}, {.count = kRows}, {}, aligned);
    return y;
  };
  const Tensor got = multiply(divided, multiplied, kernels::Precision::int8),
               want = multiply(x, weight, kernels::Precision::fp32);
  double squares = 0;
  for (int64_t i = 0; i < got.numel(); ++i) squares += std::pow(got.data<float>()[i] - want.data<float>()[i], 2);
  return squares;
}

InputRows rows_of(const Tensor& x) {
  return {std::vector<float>(x.data<float>(), x.data<float>() + x.numel()),
          std::vector<float>(x.data<float>(), x.data<float>() + x.numel())};
}

// Xiao et al. 2023, "SmoothQuant", eq. 4, with α = 1/2.
std::vector<float> smooth_quant(const Tensor& x, const Tensor& weight) {
  std::vector<float> max_x(kIn), max_w(kIn), factors(kIn);
  for (int64_t i = 0; i < x.numel(); ++i) max_x[i % kIn] = std::max(max_x[i % kIn], std::abs(x.data<float>()[i]));
  for (int64_t i = 0; i < weight.numel(); ++i) {
    max_w[i % kIn] = std::max(max_w[i % kIn], std::abs(weight.data<float>()[i]));
  }
  for (int64_t c = 0; c < kIn; ++c) factors[c] = std::sqrt(max_x[c] / max_w[c]);
  return factors;
}

TEST(SmoothingFactors, HaveASmallerErrorThanNoneAndThanSmoothQuants) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  const double found = int8_error(x, weight, smoothing_factors(rows_of(x), weight));
  EXPECT_LT(found, 0.8 * int8_error(x, weight, std::vector<float>(kIn, 1.0f)));
  EXPECT_LT(found, 0.9 * int8_error(x, weight, smooth_quant(x, weight)));
}

// The error of a weight is multiplied by the channel's deviation, divided by its factor.
TEST(SmoothingFactors, AChannelWithSmallerDeviationsHasASmallerFactor) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  InputRows rows = rows_of(x);
  const auto equal = smoothing_factors(rows, weight);
  constexpr int64_t kChannel = 3;
  for (size_t i = kChannel; i < rows.apart.size(); i += kIn) rows.apart[i] *= 0.01f;
  const auto small = smoothing_factors(rows, weight);
  // The logarithm of the channel's factor relative to the geometric mean.
  const auto relative = [&](const std::vector<float>& factors) {
    double logs = 0;
    for (int64_t c = 0; c < kIn; ++c) logs += std::log(factors[c]) / kIn;
    return std::log(factors[kChannel]) - logs;
  };
  EXPECT_LT(relative(small), relative(equal));
}

TEST(SmoothingFactors, AZeroChannelOrColumnHasFactorOne) {
  const Tensor x = activations(), weight = Tensor::randn({kOut, kIn}, 2);
  for (int64_t t = 0; t < kRows; ++t) x.data<float>()[t * kIn + 5] = 0;
  for (int64_t r = 0; r < kOut; ++r) weight.data<float>()[r * kIn + 11] = 0;
  const std::vector<float> factors = smoothing_factors(rows_of(x), weight);
  EXPECT_EQ(factors[5], 1);
  EXPECT_EQ(factors[11], 1);
  EXPECT_TRUE(std::all_of(factors.begin(), factors.end(), [](float s) { return s > 0 && std::isfinite(s); }));
}

}  // namespace
}  // namespace vitrail::quantize
