// SPDX-License-Identifier: Apache-2.0
// The products in 8 bits, and the whole numbers of their weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/gemm_tasks_internal.h"
#include "vitrail/kernels/gemm/int8_weight.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/isa/scalar_internal.h"
#include "vitrail/kernels/rowwise/scalar_rowwise_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Problem;
using testing::random_floats;
using testing::run;
using testing::Scratch;

constexpr double kEps = std::numeric_limits<float>::epsilon();
constexpr double kCoarseGelu = 2.5e-4;  // relative; and a hundredth of it absolute

// From the smallest to the largest of a row and 0.
float spread_of(const float* row, int64_t n) {
  const auto [least, most] = std::minmax_element(row, row + n);
  return std::max(0.0f, *most) - std::min(0.0f, *least);
}
float heaviest_pair_of(const float* row, int64_t n) {
  float heaviest = 0;
  for (int64_t i = 0; i < n; i += 2) {
    heaviest = std::max(heaviest, std::abs(row[i]) + (i + 1 < n ? std::abs(row[i + 1]) : 0.0f));
  }
  return heaviest;
}

// What VNNI does with four numbers in a word, for panels of any width: so that all around it is tested without it too.
template <int64_t columns>
void add_quads(const PackedPanel& p) {
  for (int64_t r = 0; r < p.rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      int32_t& sum = static_cast<int32_t*>(p.sums)[r * p.ld_sums + c];
      if (!p.accumulate) sum = 0;
      for (int64_t w = 0; w < p.words; ++w) {
        const auto* const x = reinterpret_cast<const uint8_t*>(p.x + r * p.ldx + w);
        const auto* const weight = reinterpret_cast<const int8_t*>(p.panel + w * columns + c);
        for (int i = 0; i < 4; ++i) sum += x[i] * weight[i];
      }
    }
  }
}

std::vector<DotMicrokernel> sums_of(Isa isa) {
  const DotMicrokernel quads = features_of(isa).has(Feature::avx512) ? add_quads<32>
                               : features_of(isa).has(Feature::avx2) ? add_quads<16>
                                                                     : add_quads<8>;
  std::vector<DotMicrokernel> all{int8_microkernel(), quads};
  if (features_of(isa).has(Feature::avx512_vnni)) all.push_back(vnni_microkernel());
  return all;
}

// Every instruction set sums the same whole numbers; only the fp32 steps after the sums may round apart.
TEST(Int8Product, EqualsTheReferenceAtEverySize) {
  for (const int64_t out : {1, 5, 16, 17, 33, 130}) {
    for (const int64_t in : {1, 2, 7, 8, 31, 64, 97, 1001}) {
      const Problem problem(13, in, out);
      testing::for_each_isa([&](Isa isa) {
        if (isa == Isa::scalar) return;
        for (const DotMicrokernel sums : sums_of(isa)) {
          const auto plain = make_scalar_int8_gemm(problem.weight.data(), problem.bias.data(), out, in);
          const std::vector<float> want = run(*plain, problem);
          const auto tiles = make_int8_gemm(problem.weight.data(), problem.bias.data(), out, in, sums);
          // Two roundings of the scaled sum and one of the sum with the bias.
          testing::expect_close(run(*tiles, problem), want, [&](int64_t i) {
            return kEps * (2 * std::abs(double{want[i]} - problem.bias[i % out]) + std::abs(want[i]));
          });
        }
      });
    }
  }
}

// A file's numbers need not be looked for again in what they stand for.
TEST(Int8Product, OfWholeNumbersIsThatOfTheirWeight) {
  constexpr int64_t kOut = 40, kIn = 97;
  Problem problem(13, kIn, kOut);
  std::vector<int8_t> numbers(kOut * kIn);
  std::vector<float> steps(kOut);
  for (int64_t c = 0; c < kOut; ++c) {
    steps[c] = quantize_weight_row(problem.weight.data() + c * kIn, kIn, numbers.data() + c * kIn);
  }
  testing::for_each_isa([&](Isa) {
    const PackedLinear rounded(problem.weight.data(), problem.bias.data(), kOut, kIn, Precision::int8);
    const PackedLinear given(numbers.data(), steps.data(), problem.bias.data(), kOut, kIn);
    EXPECT_EQ(run(given, problem), run(rounded, problem));
  });
}

// Neighbours of 127 each, as a model rounded for VNNI may have them, with activations of 255 steps.
TEST(Int8Product, SumsWhatHasNoRoomIn16Bits) {
  for (const int64_t in : {2, 9, 64, 301}) {
    Problem problem(13, in, 40);
    for (int64_t i = 0; i < 40 * in; ++i)
      problem.weight[i] = 0.01f * static_cast<float>(i % in < 2 ? 127 : i % 255 - 127);
    for (int64_t i = 0; i < 13 * in; ++i) problem.x[i] = i % in < 2 ? 2.55f : 0.01f * static_cast<float>(i % 256);
    testing::for_each_isa([&](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const DotMicrokernel sums : sums_of(isa)) {
        const auto plain = make_scalar_int8_gemm(problem.weight.data(), nullptr, 40, in);
        const std::vector<float> want = run(*plain, problem);
        const auto tiles = make_int8_gemm(problem.weight.data(), nullptr, 40, in, sums);
        testing::expect_close(run(*tiles, problem), want, [&](int64_t i) { return 2 * kEps * std::abs(want[i]); });
        for (int64_t i = 0; i < 13 * 40; ++i) {
          double exact = 0;
          for (int64_t p = 0; p < in; ++p) {
            exact += double{problem.x[i / 40 * in + p]} * problem.weight[i % 40 * in + p];
          }
          EXPECT_NEAR(want[i], exact, 1e-5 * std::abs(exact) + 1e-4);  // whole already: nothing is rounded
        }
      }
    });
  }
}

TEST(Int8Product, AppliesActivationAndResidualOverSeveralTasks) {
  const Problem problem(401, 70, 301);  // rows and columns of more than one task
  const std::vector<float> added = random_floats(401 * 301, 4), scale = random_floats(301, 5);
  const Residual residual{added.data(), problem.out, scale.data()};
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::relu}) {
    testing::for_each_isa([&](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const DotMicrokernel sums : sums_of(isa)) {
        const auto plain = make_scalar_int8_gemm(problem.weight.data(), nullptr, problem.out, problem.in);
        const std::vector<float> want = run(*plain, problem, {activation, residual});
        const auto tiles = make_int8_gemm(problem.weight.data(), nullptr, problem.out, problem.in, sums);
        const ThreadCount threads(3);
        const double coarse = activation == Activation::gelu ? kCoarseGelu : 0;
        testing::expect_close(run(*tiles, problem, {activation, residual}), want, [&](int64_t i) {
          return 1e-6 + 8 * kEps * std::abs(want[i]) + 8 * kEps * 40 + coarse * (1e-2 + std::abs(want[i] - added[i]));
        });
      }
    });
  }
}

// Every row, one row in a block, several in a block, a first row that is not row 0.
TEST(Int8Product, TwoTermRowsEqualTheReferences) {
  struct Case {
    int64_t rows, first, stride;
  };
  for (const auto& [rows, first, stride] : {Case{7, 0, 1}, Case{200, 0, 1}, Case{401, 0, 5}, Case{394, 0, 197},
                                            Case{401, 0, 100}, Case{9, 0, 50}, Case{401, 3, 7}, Case{300, 250, 1}}) {
    const Problem problem(rows, 70, 150);
    const std::vector<float> added = random_floats(rows * 150, 4);
    const Epilogue epilogue{.activation = Activation::relu, .residual = {added.data(), problem.out}};
    const TwoTermRows two_term{.first = first, .stride = stride};
    testing::for_each_isa([&](Isa isa) {
      if (isa == Isa::scalar) return;
      for (const DotMicrokernel sums : sums_of(isa)) {
        const auto plain = make_scalar_int8_gemm(problem.weight.data(), problem.bias.data(), problem.out, problem.in);
        const std::vector<float> want = run(*plain, problem, epilogue, two_term);
        const auto tiles = make_int8_gemm(problem.weight.data(), problem.bias.data(), problem.out, problem.in, sums);
        const ThreadCount threads(3);
        // Sums are below 80 and are rounded five times on their way.
        testing::expect_close(run(*tiles, problem, epilogue, two_term), want,
                              [&](int64_t i) { return kEps * (5 * 80 + std::abs(want[i])); });
      }
    });
  }
}

// With weights that are whole already, x's steps are all that is lost; 254 times as many of them in a fine row.
TEST(Int8Product, FineRowsKeepMoreOfXAndOthersAreAsWithoutThem) {
  Problem problem(23, 300, 40);
  for (int64_t i = 0; i < 40 * 300; ++i) problem.weight[i] = 0.01f * static_cast<float>(i % 300 == 0 ? 127 : i % 63);
  const std::vector<double> want = problem.expected(Activation::none);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::int8);
    const std::vector<float> plain = run(linear, problem), fine = run(linear, problem, {.stride = 10});
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      if (i / problem.out % 10 != 0) {
        EXPECT_EQ(fine[i], plain[i]);
        continue;
      }
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double step = spread_of(x, problem.in) / 255.0 / 254;
      double bound = problem.tolerance(i);
      for (int64_t p = 0; p < problem.in; ++p) bound += std::abs(w[p]) * step / 2;
      EXPECT_NEAR(fine[i], want[i], bound);
    }
  });
}

// One input and one weight make sums that are exact but for roundings, so that GELU alone is seen.
TEST(Int8Product, ItsGeluIsFinerThanTheStepsThatFollow) {
  Problem problem(4001, 1, 1);
  for (int64_t i = 0; i < problem.rows; ++i) problem.x[i] = static_cast<float>(i - 2000) * 0.005f;  // [−10, 10]
  problem.weight[0] = 1;
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    for (const DotMicrokernel sums : sums_of(isa)) {
      const auto tiles = make_int8_gemm(problem.weight.data(), nullptr, 1, 1, sums);
      std::vector<double> want;
      for (const float x : problem.x) want.push_back(scalar::activate<double>(Activation::gelu, x));
      testing::expect_close(run(*tiles, problem, {Activation::gelu}), want,
                            [&](int64_t i) { return kCoarseGelu * (1e-2 + std::abs(want[i])); });
    }
  });
}

// What rounding to steps of a scale may cost: half a step of either factor times the other.
TEST(Int8Product, IsAsNearAsItsStepsAllow) {
  const Problem problem(9, 300, 40);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double x_step = spread_of(x, problem.in) / 255.0, w_step = heaviest_pair_of(w, problem.in) / 127.0;
      double sum = problem.bias[i % problem.out], bound = 1e-4;
      for (int64_t p = 0; p < problem.in; ++p) {
        sum += double{x[p]} * w[p];
        bound += std::abs(x[p]) * w_step / 2 + std::abs(w[p]) * x_step / 2 + x_step * w_step / 4;
      }
      EXPECT_NEAR(y[i], sum, bound);
      EXPECT_NEAR(y[i], sum, 6 * std::sqrt(300.0) * (x_step + w_step));  // and near what chance makes of it
    }
    EXPECT_LT(linear.packed_bytes(), 300 * 48 * sizeof(float));
  });
}

// GELU's results reach far above 0 and little below it: their steps are as fine as 255 of them allow.
TEST(Int8Product, GivesAllItsStepsToWhatIsPositive) {
  Problem problem(9, 300, 40);
  for (float& x : problem.x) x = std::max(x, -0.17f);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), nullptr, problem.out, problem.in, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    double squares = 0, chance = 0;
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double x_step = spread_of(x, problem.in) / 255.0, w_step = heaviest_pair_of(w, problem.in) / 127.0;
      double sum = 0;
      for (int64_t p = 0; p < problem.in; ++p) {
        sum += double{x[p]} * w[p];
        chance += (w[p] * x_step * w[p] * x_step + x[p] * w_step * x[p] * w_step) / 12;  // of what rounding cuts off
      }
      squares += (y[i] - sum) * (y[i] - sum);
    }
    EXPECT_LT(squares, 1.3 * chance);  // 360 sums
  });
}

TEST(Int8Weight, EveryInstructionSetHasTheSameNumbersWithinTheLimits) {
  for (const int64_t in : {1, 2, 3, 8, 17, 64, 301}) {
    const std::vector<float> row = random_floats(in, 7 + static_cast<int>(in));
    std::vector<int8_t> want(static_cast<size_t>(in)), got(want);
    const float step = scalar::quantize_weight_row(row.data(), in, want.data());
    testing::for_each_isa([&](Isa) {
      EXPECT_EQ(quantize_weight_row(row.data(), in, got.data()), step);
      EXPECT_EQ(got, want);
    });
    for (int64_t i = 0; i < in; ++i) {
      EXPECT_NEAR(step * static_cast<float>(want[i]), row[i], step * 0.5001f);
      EXPECT_LE(std::abs(want[i]), kMaxInt8);
      if (i % 2 == 1) {
        EXPECT_LE(std::abs(want[i] + want[i - 1]), kMaxSaturatingPair);
      }
    }
  }
}

// Whatever their step, and their largest: what is whole already is not rounded again.
TEST(Int8Weight, FindsWhatIsWholeAlready) {
  for (const int heaviest : {70, 100, 127, 128}) {
    std::vector<int8_t> numbers(50), got(50);
    for (int i = 0; i < 50; ++i) numbers[i] = static_cast<int8_t>(i * 29 % 63 - 31);
    numbers[20] = static_cast<int8_t>(-(heaviest - 5));
    numbers[21] = -5;
    std::vector<float> row;
    for (const int8_t number : numbers) row.push_back(0.0123f * static_cast<float>(number));
    testing::for_each_isa([&](Isa) {
      EXPECT_NEAR(quantize_weight_row(row.data(), 50, got.data()), 0.0123f, 1e-7f);
      EXPECT_EQ(got, numbers) << heaviest;
    });
  }
}

TEST(Int8Weight, ZerosHaveNoStepAndWhatIsNotFiniteHasNone) {
  std::vector<float> row(20);
  std::vector<int8_t> numbers(20, 1);
  testing::for_each_isa([&](Isa) {
    row[13] = 0;
    EXPECT_EQ(quantize_weight_row(row.data(), 20, numbers.data()), 0);
    EXPECT_EQ(numbers, std::vector<int8_t>(20));
    row[13] = std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(quantize_weight_row(row.data(), 20, numbers.data())));
  });
}

// Where products are summed two by two in 16 bits, the largest there can be: x of 255 steps above its zero, and all
// there is below it.
TEST(Int8Product, HasRoomForTheLargestNumbersAndNeighbours) {
  constexpr int64_t kIn = 64;
  const std::vector<std::array<float, 2>> pairs{{127, -127}, {-127, 127}, {127, 1}, {-127, -1}, {64, 64}, {-64, -64}};
  std::vector<float> weight, x(2 * kIn, 1.0f);
  for (const auto& pair : pairs) {
    for (int64_t i = 0; i < kIn; ++i) weight.push_back(i == 0 ? 127.0f : i == 1 ? 1.0f : pair[i % 2]);
  }
  std::fill_n(x.begin(), kIn, -1.0f);
  const auto out = static_cast<int64_t>(pairs.size());
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(weight.data(), nullptr, out, kIn, Precision::int8);
    std::vector<float> y(static_cast<size_t>(2 * out));
    Scratch scratch(linear.scratch_bytes({.count = 2}));
    linear.run({x.data(), kIn}, {y.data(), out}, {.count = 2}, {}, scratch.aligned());
    for (int64_t c = 0; c < out; ++c) {
      const float sum = 128 + 31 * (pairs[c][0] + pairs[c][1]);
      EXPECT_NEAR(y[c], -sum, 0.01f) << c;
      EXPECT_NEAR(y[out + c], sum, 0.01f) << c;
    }
  });
}

TEST(Int8Product, WhatIsNotFiniteStaysSoInItsRowOnly) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int64_t at : {0, 3, 19}) {
      Problem problem(15, 20, 20);
      problem.x[14 * 20 + at] = bad;
      testing::for_each_isa([&](Isa) {
        const PackedLinear linear(problem.weight.data(), problem.bias.data(), 20, 20, Precision::int8);
        for (const int64_t stride : {0, 7}) {
          const std::vector<float> y = run(linear, problem, {.stride = stride});
          for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 14) << i;
        }
      });
    }
  }
}

TEST(Int8Product, RowsOfZerosGiveTheBias) {
  Problem problem(3, 10, 4);
  std::fill(problem.x.begin(), problem.x.end(), 0.0f);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), 4, 10, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], problem.bias[i % 4]);
  });
}

}  // namespace
}  // namespace vitrail::kernels
