// SPDX-License-Identifier: Apache-2.0
// The int16 GEMM, and Precision::half, which uses it.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"

namespace vitrail::kernels {
namespace {

using testing::kEps;
using testing::Problem;
using testing::random_floats;
using testing::round_values_to_bf16;
using testing::run;

// vpdpwssd in plain C++, which also checks that no accumulator overflows.
void emulated_vnni(const DotMicrokernelArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t c = 0; c < kAvx512Columns; ++c) {
      int32_t& accumulator = static_cast<int32_t*>(args.accumulators)[r * args.ld_accumulators + c];
      int64_t exact = args.accumulate ? accumulator : 0;
      for (int64_t g = 0; g < args.k_groups; ++g) {
        const auto* const x = reinterpret_cast<const int16_t*>(args.x + r * args.ldx + g);
        const auto* const weight = reinterpret_cast<const int16_t*>(args.panel + g * kAvx512Columns + c);
        exact += x[0] * weight[0] + x[1] * weight[1];
      }
      accumulator = static_cast<int32_t>(exact);
      ASSERT_EQ(accumulator, exact);
    }
  }
}

// body(GEMM) for each instruction set but scalar and each of its microkernels.
template <class Body>
void for_each_int16_gemm(const Problem& problem, const Body& body) {
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    std::vector<DotMicrokernel> microkernels{emulated_vnni};
    if (features_of(isa).has(Feature::avx512_vnni)) microkernels.push_back(int16_microkernel());
    for (const DotMicrokernel microkernel : microkernels) {
      body(*make_int16_gemm(problem.weight.data(), problem.bias.data(), problem.out, problem.in, microkernel));
    }
  });
}

double l2_norm(const float* row, int64_t n) {
  return std::sqrt(std::inner_product(row, row + n, row, 0.0, std::plus<>(), [](double a, double b) { return a * b; }));
}

// Rounding moves each factor by at most half of its scale: a sum by half of x's scale per weight, half of the weight's
// scale per x, and a quarter of both.  Each scale is rounded to fp32, and so are three operations with the accumulator.
double int16_tolerance(const Problem& problem, int64_t i, double sum) {
  const float* const x = problem.x.data() + i / problem.out * problem.in;
  const float* const weight = problem.weight.data() + i % problem.out * problem.in;
  const auto scale = [&](const float* row) {
    return 1.0001 * l2_norm(row, problem.in) / (32767 - 0.5 * std::sqrt(static_cast<double>(problem.in)));
  };
  const double scale_x = scale(x), scale_w = scale(weight);
  double tolerance = 4 * kEps * (std::abs(sum) + std::abs(problem.bias[i % problem.out]));
  for (int64_t p = 0; p < problem.in; ++p) {
    tolerance += std::abs(x[p]) * scale_w / 2 + std::abs(weight[p]) * scale_x / 2 + scale_x * scale_w / 4;
  }
  return tolerance;
}

// Every number of rows of a register tile, odd inputs, several blocks.
TEST(Int16Gemm, AppliesActivationAndResidualAtEverySize) {
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
        for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
          const ThreadCount threads(3);
          testing::expect_close(run(gemm, problem, {Activation::relu, {added.data(), out, scale.data()}}), want,
                                [&](int64_t i) {
                                  return std::abs(scale[i % out]) * int16_tolerance(problem, i, sums[i]) +
                                         kEps * std::abs(want[i]) + 1e-30;
                                });
        });
      }
    }
  }
}

// Equal rows of x and of the weight make the largest dot products, for rows of equal values and rows with one value.
TEST(Int16Gemm, LargestDotProductsDoNotOverflow) {
  for (const int64_t in : {1, 2, 3, 64, 3072, 70'000}) {
    for (const bool one_value : {false, true}) {
      Problem problem(3, in, 5);
      for (int64_t p = 0; p < in; ++p) {
        const float value = p == in / 2 ? -100.0f : one_value ? 0.0f : 100.0f;
        for (int64_t r = 0; r < 3; ++r) problem.x[r * in + p] = r == 2 ? -value : value;
        for (int64_t c = 0; c < 5; ++c) problem.weight[c * in + p] = value;
      }
      const std::vector<double> want = problem.expected(Activation::none);
      for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
        testing::expect_close(run(gemm, problem), want,
                              [&](int64_t i) { return int16_tolerance(problem, i, want[i]); });
      });
    }
  }
}

TEST(Int16Gemm, IsAsPreciseForRowsWhoseSquaresExceedFp32) {
  for (const float size : {1e-28f, 1e-20f, 1e20f, 1e30f}) {
    Problem problem(4, 70, 40);
    for (float& x : problem.x) x *= size;
    std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
    const std::vector<double> want = problem.expected(Activation::none);
    for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
      testing::expect_close(run(gemm, problem), want, [&](int64_t i) { return int16_tolerance(problem, i, want[i]); });
    });
  }
}

TEST(Int16Gemm, IgnoresTwoTermRows) {
  const Problem problem(25, 70, 40);
  for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
    EXPECT_FALSE(gemm.takes_correction());
    EXPECT_EQ(run(gemm, problem, {}, {.stride = 5}), run(gemm, problem));
  });
}

TEST(Int16Gemm, RowsOfZerosGiveTheBias) {
  Problem problem(3, 10, 4);
  std::fill(problem.x.begin(), problem.x.end(), 0.0f);
  std::fill_n(problem.weight.begin(), 10, 0.0f);
  for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
    const std::vector<float> y = run(gemm, problem);
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], problem.bias[i % 4]);
  });
}

TEST(Int16Gemm, AValueThatIsNotFiniteMakesItsRowNaNOnly) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int64_t at : {0, 3, 19}) {
      Problem problem(15, 20, 20);
      problem.x[14 * 20 + at] = bad;
      for_each_int16_gemm(problem, [&](const PackedGemm& gemm) {
        const std::vector<float> y = run(gemm, problem);
        for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 14) << i;
      });
    }
  }
}

// Precision::half is bf16 with AMX or 64-bit ARM's bf16, int16 with AVX-512 VNNI, elsewhere fp32 with weights rounded
// to bf16.
TEST(HalfPrecision, IsBf16OrInt16AndRoundsWeightsToBf16Elsewhere) {
  const Problem problem(9, 300, 40);
  const std::vector<double> exact = problem.expected(Activation::none);
  Problem rounded = problem;
  round_values_to_bf16(rounded.weight);
  const std::vector<double> of_rounded = rounded.expected(Activation::none);
  Problem both_rounded = rounded;
  round_values_to_bf16(both_rounded.x);
  const std::vector<double> of_both_rounded = both_rounded.expected(Activation::none);
  testing::for_each_isa([&](Isa isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::half);
    const std::vector<float> y = run(linear, problem);
    const FeatureSet features = features_of(isa);
    const bool bf16 = features.has(Feature::amx) || features.has(Feature::neon_bf16);
    const bool int16 = !bf16 && features.has(Feature::avx512_vnni);
    EXPECT_STREQ(arithmetic_of(Precision::half), bf16 ? "bf16" : int16 ? "int16" : "fp32 (weights rounded to bf16)");
    EXPECT_STREQ(arithmetic_of(Precision::fp32), "fp32");
    EXPECT_STREQ(arithmetic_of(Precision::int8), "int8");
    if (bf16) {  // twice the tolerance: see bf16_gemm_test.cpp
      testing::expect_close(y, of_both_rounded, [&](int64_t i) { return 2 * both_rounded.tolerance(i); });
    } else if (int16) {
      testing::expect_close(y, exact, [&](int64_t i) { return int16_tolerance(problem, i, exact[i]); });
    } else {
      testing::expect_close(y, of_rounded, [&](int64_t i) { return rounded.tolerance(i); });
    }
  });
}

}  // namespace
}  // namespace vitrail::kernels
