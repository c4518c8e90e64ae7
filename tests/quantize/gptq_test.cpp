// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

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

// An identity of the outputs correlates no rows.
TEST(Gptq, WithoutAnOutputHessianRowsAreRoundedAsWithTheIdentity) {
  const Tensor weight = Tensor::randn({6, 16}, 1), alone = weight.clone(), identity = weight.clone();
  const Tensor inputs = correlated_hessian(16, 2);
  gptq_round_weight(alone, inputs, Tensor());
  gptq_round_weight(identity, inputs, diagonal(6, 1));
  EXPECT_FALSE(testing::close(alone, weight, 1e-3));
  EXPECT_TRUE(testing::close(alone, identity, 1e-6));
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

// The same by Frantar's updates: after each rounding, the values that are not rounded yet move by what compensates its
// error best, which the inverse of the remaining Hessian tells.
using Matrix = std::vector<std::vector<double>>;

Matrix inverse(Matrix a) {
  const size_t n = a.size();
  Matrix result(n, std::vector<double>(n));
  for (size_t i = 0; i < n; ++i) result[i][i] = 1;
  for (size_t i = 0; i < n; ++i) {
    const double pivot = a[i][i];
    for (size_t k = 0; k < n; ++k) a[i][k] /= pivot, result[i][k] /= pivot;
    for (size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = a[r][i];
      for (size_t k = 0; k < n; ++k) a[r][k] -= factor * a[i][k], result[r][k] -= factor * result[i][k];
    }
  }
  return result;
}

// Calls round(index) from the largest diagonal to the smallest; it returns a change of each column's error, which the
// remaining indices compensate by move(other index, factor).
template <class Round, class Move>
void in_order(const Tensor& hessian, double damping, const Round& round, const Move& move) {
  const auto n = static_cast<size_t>(hessian.size(0));
  const auto at = [&](size_t i, size_t k) { return double{hessian.data<float>()[i * n + k]}; };
  double mean = 0;
  for (size_t i = 0; i < n; ++i) mean += at(i, i) / static_cast<double>(n);
  std::vector<size_t> left(n);
  std::iota(left.begin(), left.end(), size_t{0});
  std::stable_sort(left.begin(), left.end(), [&](size_t a, size_t b) { return at(a, a) < at(b, b); });
  while (!left.empty()) {
    Matrix damped(left.size(), std::vector<double>(left.size()));
    for (size_t i = 0; i < left.size(); ++i) {
      for (size_t k = 0; k < left.size(); ++k) damped[i][k] = at(left[i], left[k]) + (i == k ? damping * mean : 0);
    }
    const Matrix covariance = inverse(damped);
    const size_t last = left.size() - 1;
    round(left[last], covariance[last][last]);
    for (size_t i = 0; i < last; ++i) move(left[i], left[last], covariance[i][last] / covariance[last][last]);
    left.pop_back();
  }
}

// Rounds a row at a scale; returns the cost.
double round_row(std::vector<double> row, const Tensor& hessian, double scale, std::vector<int>& values) {
  const int n = static_cast<int>(row.size()), pair_limit = kernels::max_int8_pair();
  std::vector<double> error(row.size());
  values.assign(row.size(), 0);
  double cost = 0;
  in_order(
      hessian, 0.003,
      [&](size_t c, double variance) {
        const size_t other = c ^ 1;
        const int pair = static_cast<int>(other) < n ? values[other] : 0;
        const int highest = std::min(127, pair_limit - std::max(pair, 0)),
                  lowest = -std::min(127, pair_limit + std::min(pair, 0));
        values[c] = std::clamp(static_cast<int>(std::nearbyint(row[c] / scale)), lowest, highest);
        error[c] = row[c] - values[c] * scale;
        cost += error[c] * error[c] / variance;
      },
      [&](size_t to, size_t from, double factor) { row[to] -= factor * error[from]; });
  return cost;
}

Tensor rounded_by_updates(const Tensor& weight, const Tensor& inputs, const Tensor& outputs) {
  const auto out = static_cast<size_t>(weight.size(0)), in = static_cast<size_t>(weight.size(1));
  std::vector<std::vector<double>> target(out);
  std::vector<double> scales(out);
  std::vector<int> values;
  for (size_t r = 0; r < out; ++r) {
    const float* const row = weight.data<float>() + r * in;
    target[r].assign(row, row + in);
    std::vector<int8_t> nearest(in);
    const float largest = kernels::quantize_weight_row(row, static_cast<int64_t>(in), nearest.data());
    double best = std::numeric_limits<double>::infinity();
    for (const float ratio : {1.0F, 0.93F, 0.86F, 0.79F, 0.72F, 0.65F, 0.58F}) {
      const double cost = round_row(target[r], inputs, ratio * largest, values);
      if (cost < best) best = cost, scales[r] = ratio * largest;
    }
  }
  Tensor result = weight.clone();
  std::vector<std::vector<double>> error(out, std::vector<double>(in));
  in_order(
      outputs, 0.5,
      [&](size_t r, double) {
        round_row(target[r], inputs, scales[r], values);
        for (size_t c = 0; c < in; ++c) {
          const double value = scales[r] * values[c];
          error[r][c] = target[r][c] - value;
          result.data<float>()[r * in + c] = static_cast<float>(value);
        }
      },
      [&](size_t to, size_t from, double factor) {
        for (size_t c = 0; c < in; ++c) target[to][c] -= factor * error[from][c];
      });
  return result;
}

TEST(Gptq, EqualsTheUpdatesOfTheRemainingWeights) {
  for (const auto& [out, in] : {std::array<int64_t, 2>{1, 1}, {1, 6}, {2, 7}, {5, 4}, {7, 11}, {10, 16}, {3, 24}}) {
    for (uint64_t seed = 1; seed <= 6; ++seed) {
      const Tensor weight = Tensor::randn({out, in}, seed), rounded = weight.clone();
      if (seed % 2 == 0) {  // large values of one sign, whose pairs reach the limit
        for (int64_t i = 0; i < weight.numel(); ++i) weight.data<float>()[i] = 1 + 0.3F * weight.data<float>()[i];
        rounded.copy_(weight);
      }
      const Tensor inputs = correlated_hessian(in, seed + 10), outputs = correlated_hessian(out, seed + 20);
      gptq_round_weight(rounded, inputs, outputs);
      EXPECT_TRUE(testing::close(rounded, rounded_by_updates(weight, inputs, outputs), 1e-6, 1e-5))
          << out << " rows of " << in << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace vitrail::quantize
