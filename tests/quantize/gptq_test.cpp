// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/kernels/isa/isa.h"
#include "vitrail/quantize/gptq_internal.h"
#include "vitrail/quantize/rounding.h"

namespace vitrail::quantize {
namespace {

// Xᵀ X [n, n] of tokens with features that depend on each other.
Tensor correlated_hessian(int64_t n, uint64_t seed) {
  const Tensor x = Tensor::randn({4 * n, n}, seed), hessian = Tensor::zeros({n, n});
  const float* const v = x.data<float>();
  for (int64_t t = 0; t < 4 * n; ++t) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t k = 0; k < n; ++k) {
        hessian.data<float>()[i * n + k] += (v[t * n + i] + 2 * v[t * n]) * (v[t * n + k] + 2 * v[t * n]);
      }
    }
  }
  return hessian;
}

Tensor diagonal(int64_t n, float value) {
  const Tensor result = Tensor::zeros({n, n});
  for (int64_t i = 0; i < n; ++i) result.data<float>()[i * n + i] = value;
  return result;
}

// tr(G E H Eᵀ), E = weight − rounded.
double error_of(const Tensor& weight, const Tensor& rounded, const Tensor& inputs, const Tensor& outputs) {
  const int64_t out = weight.size(0), in = weight.size(1);
  const auto error = [&](int64_t r, int64_t c) {
    return double{weight.data<float>()[r * in + c]} - rounded.data<float>()[r * in + c];
  };
  double sum = 0;
  for (int64_t a = 0; a < out; ++a) {
    for (int64_t b = 0; b < out; ++b) {
      for (int64_t i = 0; i < in; ++i) {
        for (int64_t k = 0; k < in; ++k) {
          sum +=
              double{outputs.data<float>()[a * out + b]} * error(b, i) * inputs.data<float>()[i * in + k] * error(a, k);
        }
      }
    }
  }
  return sum;
}

TEST(Gptq, HasLessErrorThanTheNearestValuesForCorrelatedInputs) {
  for (const auto& [out, in] : {std::array<int64_t, 2>{1, 8}, {4, 9}, {12, 16}}) {
    double rounded_error = 0, nearest_error = 0;
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      const Tensor weight = Tensor::randn({out, in}, seed), rounded = weight.clone();
      const Tensor inputs = correlated_hessian(in, seed + 10), outputs = correlated_hessian(out, seed + 20);
      gptq_round_weight(rounded, inputs, outputs);
      rounded_error += error_of(weight, rounded, inputs, outputs);
      nearest_error += error_of(weight, dequantize(to_int8(weight)), inputs, outputs);
    }
    EXPECT_LT(rounded_error, 0.7 * nearest_error) << out << " rows of " << in;
  }
}

// Without correlations nothing can be compensated: each row has the nearest values, of the best scale.
TEST(Gptq, IsNoWorseThanTheNearestValuesForIndependentInputs) {
  for (const auto& [out, in] : {std::array<int64_t, 2>{1, 1}, {3, 2}, {2, 7}, {5, 32}}) {
    const Tensor weight = Tensor::randn({out, in}, 1), rounded = weight.clone();
    const Tensor inputs = diagonal(in, 3), outputs = diagonal(out, 2);
    gptq_round_weight(rounded, inputs, outputs);
    EXPECT_LE(error_of(weight, rounded, inputs, outputs),
              1.0001 * error_of(weight, dequantize(to_int8(weight)), inputs, outputs) + 1e-12)
        << out << " rows of " << in;
  }
}

// Sums of adjacent values saturate on some processors: to_int8() would give such a row another scale.
TEST(Gptq, KeepsPairsOfValuesInTheRangeOfEachInstructionSet) {
  const Tensor weight = Tensor::randn({6, 11}, 1);
  for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = 1 + 0.02F * weight.data<float>()[i];
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::force_isa(isa);
    for (const Tensor& inputs : {correlated_hessian(11, 2), diagonal(11, 1)}) {
      const Tensor rounded = weight.clone();
      gptq_round_weight(rounded, inputs, correlated_hessian(6, 3));
      EXPECT_TRUE(testing::close(dequantize(to_int8(rounded)), rounded, 0, 1e-6)) << kernels::name_of(isa);
      EXPECT_TRUE(testing::close(rounded, weight, 0.2)) << kernels::name_of(isa);
      const Tensor values = to_int8(rounded).values;
      for (int64_t i = 0; i < values.numel(); ++i) {
        const int64_t column = i % 11;
        const int pair = values.data<int8_t>()[i] + (column < 10 ? values.data<int8_t>()[i + 1] : 0);
        if (column % 2 == 0) {
          EXPECT_LE(std::abs(pair), kernels::max_int8_pair()) << kernels::name_of(isa) << " " << i;
        }
      }
    }
  }
  kernels::force_isa(kernels::available_isas().back());
}

TEST(Gptq, RoundsUnusedInputsAndRowsOfZeros) {
  const Tensor weight = Tensor::randn({3, 6}, 1);
  weight.select(0, 1).copy_(Tensor::zeros({6}));
  for (const Tensor& inputs : {Tensor::zeros({6, 6}), diagonal(6, 1)}) {
    const Tensor rounded = weight.clone();
    gptq_round_weight(rounded, inputs, Tensor::zeros({3, 3}));
    EXPECT_TRUE(testing::close(rounded.select(0, 1), Tensor::zeros({6}), 0));
    EXPECT_TRUE(testing::close(rounded, weight, 4.0 / 127));
    EXPECT_TRUE(testing::close(dequantize(to_int8(rounded)), rounded, 0, 1e-6));
  }
}

}  // namespace
}  // namespace vitrail::quantize
