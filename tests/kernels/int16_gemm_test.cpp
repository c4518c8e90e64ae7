// SPDX-License-Identifier: Apache-2.0
// The products in 16 bits.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/dtype.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Problem;
using testing::random_floats;
using testing::run;

constexpr double kEps = std::numeric_limits<float>::epsilon();

// What VNNI does with two numbers in a word, so that all around it is tested without it too.
void add_pairs(const PackedPanel& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < kAvx512Columns; ++c) {
      int32_t& sum = static_cast<int32_t*>(p.sums)[r * p.ld_sums + c];
      int64_t exact = p.accumulate ? sum : 0;
      for (int64_t w = 0; w < p.words; ++w) {
        const auto* const x = reinterpret_cast<const int16_t*>(p.x + r * p.ldx + w);
        const auto* const weight = reinterpret_cast<const int16_t*>(p.panel + w * kAvx512Columns + c);
        exact += x[0] * weight[0] + x[1] * weight[1];
      }
      sum = static_cast<int32_t>(exact);
      ASSERT_EQ(sum, exact);
    }
  }
}

std::vector<DotMicrokernel> pair_sums_of(Isa isa) {
  std::vector<DotMicrokernel> all{add_pairs};
  if (features_of(isa).has(Feature::avx512_vnni)) all.push_back(int16_microkernel());
  return all;
}

double length_of(const float* row, int64_t n) {
  return std::sqrt(std::inner_product(row, row + n, row, 0.0, std::plus<>(), [](double a, double b) { return a * b; }));
}

// Rounding moves each number by half a step at most: sums by half a step of x a number of the weight, the other way
// round, and a quarter of both.  Each step is in fp32, and so are three operations with the sum.
double int16_tolerance(const Problem& problem, int64_t i, double sum) {
  const float *const x = problem.x.data() + i / problem.out * problem.in, *const weight = problem.weight.data() +
                                                                                          i % problem.out * problem.in;
  const auto step = [&](const float* row) {
    return length_of(row, problem.in) / (32767 - 0.5 * std::sqrt(static_cast<double>(problem.in)));
  };
  const double x_step = 1.0001 * step(x), weight_step = 1.0001 * step(weight);
  double tolerance = 4 * kEps * (std::abs(sum) + std::abs(problem.bias[i % problem.out]));
  for (int64_t p = 0; p < problem.in; ++p) {
    tolerance += std::abs(x[p]) * weight_step / 2 + std::abs(weight[p]) * x_step / 2 + x_step * weight_step / 4;
  }
  return tolerance;
}

// Every number of rows of a tile, odd inputs, several tasks.
TEST(Int16Product, AppliesActivationAndResidualAtEverySize) {
  for (const int64_t rows : {1, 11, 12, 25, 401}) {
    for (const int64_t out : {1, 17, 33, 130, 301}) {
      for (const int64_t in : {1, 2, 31, 64, 97, 1001}) {
        if (rows * out * in > 5'000'000) continue;
        const Problem problem(rows, in, out);
        const std::vector<float> added = random_floats(rows * out, 4), scale = random_floats(out, 5);
        const std::vector<double> sums = problem.expected(Activation::none);
        std::vector<double> want(sums.size());
        for (size_t i = 0; i < want.size(); ++i) {
          want[i] = double{added[i]} + double{scale[i % out]} * std::max(sums[i], 0.0);
        }
        testing::for_each_isa([&](Isa isa) {
          if (isa == Isa::scalar) return;
          for (const DotMicrokernel add : pair_sums_of(isa)) {
            const auto product = make_int16_gemm(problem.weight.data(), problem.bias.data(), out, in, add);
            const ThreadCount threads(3);
            testing::expect_close(run(*product, problem, {Activation::relu, {added.data(), out, scale.data()}}), want,
                                  [&](int64_t i) {
                                    return std::abs(scale[i % out]) * int16_tolerance(problem, i, sums[i]) +
                                           kEps * std::abs(want[i]) + 1e-30;
                                  });
          }
        });
      }
    }
  }
}

// Rows and columns alike have the largest sum that there can be; then one number that has all of a row's length, and a
// great many.
TEST(Int16Product, HasRoomForTheLargestSums) {
  for (const int64_t in : {1, 2, 3, 64, 3072, 70'000}) {
    for (const bool alone : {false, true}) {
      Problem problem(3, in, 5);
      for (int64_t p = 0; p < in; ++p) {
        const float value = p == in / 2 ? -100.0f : alone ? 0.0f : 100.0f;
        for (int64_t r = 0; r < 3; ++r) problem.x[r * in + p] = r == 2 ? -value : value;
        for (int64_t c = 0; c < 5; ++c) problem.weight[c * in + p] = value;
      }
      const std::vector<double> want = problem.expected(Activation::none);
      testing::for_each_isa([&](Isa isa) {
        if (isa == Isa::scalar) return;
        for (const DotMicrokernel add : pair_sums_of(isa)) {
          const auto product = make_int16_gemm(problem.weight.data(), problem.bias.data(), 5, in, add);
          testing::expect_close(run(*product, problem), want,
                                [&](int64_t i) { return int16_tolerance(problem, i, want[i]); });
        }
      });
    }
  }
}

// Numbers whose squares fp32 does not hold.
TEST(Int16Product, KeepsItsBitsWhateverTheSizeOfRows) {
  for (const float size : {1e-28f, 1e-20f, 1e20f, 1e30f}) {
    Problem problem(4, 70, 40);
    for (float& x : problem.x) x *= size;
    std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
    const std::vector<double> want = problem.expected(Activation::none);
    testing::for_each_isa([&](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const DotMicrokernel add : pair_sums_of(isa)) {
        const auto product = make_int16_gemm(problem.weight.data(), problem.bias.data(), 40, 70, add);
        testing::expect_close(run(*product, problem), want,
                              [&](int64_t i) { return int16_tolerance(problem, i, want[i]); });
      }
    });
  }
}

TEST(Int16Product, RowsOfZerosGiveTheBias) {
  Problem problem(3, 10, 4);
  std::fill(problem.x.begin(), problem.x.end(), 0.0f);
  std::fill_n(problem.weight.begin(), 10, 0.0f);
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    for (const DotMicrokernel add : pair_sums_of(isa)) {
      const auto product = make_int16_gemm(problem.weight.data(), problem.bias.data(), 4, 10, add);
      const std::vector<float> y = run(*product, problem);
      for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], problem.bias[i % 4]);
    }
  });
}

TEST(Int16Product, WhatIsNotFiniteStaysSoInItsRowOnly) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int64_t at : {0, 3, 19}) {
      Problem problem(15, 20, 20);
      problem.x[14 * 20 + at] = bad;
      testing::for_each_isa([&](Isa isa) {
        if (isa == Isa::scalar) return;
        for (const DotMicrokernel add : pair_sums_of(isa)) {
          const auto product = make_int16_gemm(problem.weight.data(), problem.bias.data(), 20, 20, add);
          const std::vector<float> y = run(*product, problem);
          for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 14) << i;
        }
      });
    }
  }
}

// Precision::half is int16 with AVX-512 VNNI, elsewhere fp32 with weights rounded to bf16.
TEST(HalfPrecision, IsCloserToFp32WhereTheProcessorHasVnni) {
  const Problem problem(9, 300, 40);
  const std::vector<double> exact = problem.expected(Activation::none);
  Problem rounded = problem;
  for (float& value : rounded.weight) value = static_cast<float>(BFloat16(value));
  const std::vector<double> of_rounded = rounded.expected(Activation::none);
  testing::for_each_isa([&](Isa isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::half);
    const std::vector<float> y = run(linear, problem);
    const bool vnni = features_of(isa).has(Feature::avx512_vnni);
    EXPECT_STREQ(arithmetic_of(Precision::half), vnni ? "int16" : "fp32 (weights rounded to bf16)");
    EXPECT_STREQ(arithmetic_of(Precision::fp32), "fp32");
    EXPECT_STREQ(arithmetic_of(Precision::int8), "int8");
    if (vnni) {
      testing::expect_close(y, exact, [&](int64_t i) { return int16_tolerance(problem, i, exact[i]); });
    } else {
      testing::expect_close(y, of_rounded, [&](int64_t i) { return rounded.tolerance(i); });
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
