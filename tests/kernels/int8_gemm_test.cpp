// SPDX-License-Identifier: Apache-2.0
// The int8 GEMM: its microkernels, the quantisation of activations, two-term rows, the saturation limit.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/amx_microkernel-inl.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"
#include "vitrail/kernels/gemm/weight_quantization_internal.h"
#include "vitrail/kernels/isa/aligned_array_internal.h"

namespace vitrail::kernels {
namespace {

using testing::kEps;
using testing::Problem;
using testing::random_floats;
using testing::run;
using testing::Scratch;
using testing::TestedMicrokernel;

constexpr double kCoarseGelu = 2.5e-4;  // relative error; the absolute one is a hundredth of it

// The scale of a row of activations.
double activation_scale(const float* row, int64_t n) {
  const auto [min, max] = std::minmax_element(row, row + n);
  return (std::max(0.0f, *max) - std::min(0.0f, *min)) / 255.0;
}
// An upper bound of the scale of a row of weights.
double weight_scale(const float* row, int64_t n) {
  float max = 0;
  for (int64_t i = 0; i < n; i += 2) max = std::max(max, std::abs(row[i]) + (i + 1 < n ? std::abs(row[i + 1]) : 0.0f));
  return max / 127.0;
}

// vpdpbusd in plain C++ for panels of any layout: tests everything around the VNNI and USMMLA microkernels on
// processors without them.
template <int64_t columns, int64_t interleaved_groups = 1>
void emulated_dot(const DotMicrokernelArgs& args) {
  for (int64_t r = 0; r < args.rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      int32_t& accumulator = static_cast<int32_t*>(args.accumulators)[r * args.ld_accumulators + c];
      if (!args.accumulate) accumulator = 0;
      for (int64_t g = 0; g < args.k_groups; ++g) {
        const auto* const x = reinterpret_cast<const uint8_t*>(args.x + r * args.ldx + g);
        const int64_t first = g / interleaved_groups * interleaved_groups;
        const int32_t* const group = args.panel + first * columns + c * interleaved_groups + g - first;
        const auto* const weight = reinterpret_cast<const int8_t*>(group);
        for (int i = 0; i < 4; ++i) accumulator += x[i] * weight[i];
      }
    }
  }
}

void emulated_int8_amx(const DotMicrokernelArgs& args) { amx_dot<Int8Tiles<EmulatedTiles>>(args, emulated_dot<32>); }

// Those of the active instruction set, `isa`, and emulated ones.
std::vector<TestedMicrokernel> int8_microkernels_of(Isa isa) {
  const FeatureSet features = features_of(isa);
  const PanelLayout usual{int8_panel_columns()};
  const DotMicrokernel emulated = features.has(Feature::avx512) ? emulated_dot<32>
                                  : features.has(Feature::avx2) ? emulated_dot<16>
                                                                : emulated_dot<8>;
  std::vector<TestedMicrokernel> all{
      {int8_microkernel(), usual}, {emulated, usual}, {emulated_dot<16, 2>, {.columns = 16, .interleaved_groups = 2}}};
  if (features.has(Feature::avx512)) all.push_back({emulated_int8_amx, usual, kAmxRows});
  if (features.has(Feature::avx512_vnni)) all.push_back({vnni_microkernel(), usual});
  if (features.has(Feature::amx)) all.push_back({amx_int8_microkernel(), usual, kAmxRows});
  if (features.has(Feature::neon_dotprod)) all.push_back({neon_dotprod_microkernel(), usual});
  if (features.has(Feature::neon_i8mm)) all.push_back({neon_i8mm_microkernel(), kNeonMatrixPanel});
  return all;
}

// body(GEMM) for each instruction set but scalar and each of its microkernels.
template <class Body>
void for_each_int8_gemm(const Problem& problem, const float* bias, const Body& body) {
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    for (const auto& [microkernel, panel, rows] : int8_microkernels_of(isa)) {
      body(*make_int8_gemm(problem.weight.data(), bias, problem.out, problem.in, microkernel, panel, rows));
    }
  });
}

// The accumulators are exact, so all instruction sets have the same ones; only the fp32 arithmetic after them may round
// differently: twice the scaled accumulator, once the sum with the bias.
TEST(Int8Gemm, EqualsTheReferenceAtEverySize) {
  for (const int64_t out : {1, 5, 16, 17, 33, 130}) {
    for (const int64_t in : {1, 2, 7, 8, 31, 64, 97, 1001}) {
      const Problem problem(13, in, out);
      const auto reference = make_scalar_int8_gemm(problem.weight.data(), problem.bias.data(), out, in);
      const std::vector<float> want = run(*reference, problem);
      for_each_int8_gemm(problem, problem.bias.data(), [&](const PackedGemm& gemm) {
        testing::expect_close(run(gemm, problem), want, [&](int64_t i) {
          return kEps * (2 * std::abs(double{want[i]} - problem.bias[i % out]) + std::abs(want[i]));
        });
      });
    }
  }
}

// 770 K groups are divided at 256 and 513, between two groups that a panel may interleave.
TEST(Int8Gemm, EqualsTheReferenceIfItsDepthIsDivided) {
  const Problem problem(3, 3077, 20);
  const auto reference = make_scalar_int8_gemm(problem.weight.data(), nullptr, problem.out, problem.in);
  const std::vector<float> want = run(*reference, problem);
  for_each_int8_gemm(problem, nullptr, [&](const PackedGemm& gemm) {
    testing::expect_close(run(gemm, problem), want, [&](int64_t i) { return 2 * kEps * std::abs(want[i]); });
  });
}

// `microkernel` gives the sums of `expected`, on complete and partial tiles along both dimensions; memory beyond the
// rows is unchanged.
void expect_same_sums(const TestedMicrokernel& microkernel, DotMicrokernel expected) {
  constexpr int64_t kMaxRows = 70, kMaxGroups = 50, kLd = 48;
  const AlignedArray<int32_t> panel = aligned_array<int32_t>(kMaxGroups * microkernel.panel.columns);
  std::vector<int32_t> x(kMaxRows * kMaxGroups);
  std::mt19937 engine(1);
  for (int32_t& group : x) group = static_cast<int32_t>(engine());
  for (int64_t i = 0; i < kMaxGroups * microkernel.panel.columns; ++i) panel[i] = static_cast<int32_t>(engine());
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 13, 15, 16, 17, 32, 33, 47, 70}) {
    for (const int64_t k_groups : {0, 1, 2, 3, 4, 5, 6, 7, 8, 15, 16, 17, 32, 50}) {
      if (k_groups % microkernel.panel.interleaved_groups != 0) continue;
      for (const bool accumulate : {false, true}) {
        const AlignedArray<int32_t> got = aligned_array<int32_t>((kMaxRows + 1) * kLd);
        std::fill_n(got.get(), (kMaxRows + 1) * kLd, 12345);
        std::vector<int32_t> want(got.get(), got.get() + (kMaxRows + 1) * kLd);
        DotMicrokernelArgs args{.x = x.data(),
                                .ldx = kMaxGroups,
                                .panel = panel.get(),
                                .k_groups = k_groups,
                                .rows = rows,
                                .accumulators = got.get(),
                                .ld_accumulators = kLd,
                                .accumulate = accumulate};
        microkernel.run(args);
        args.accumulators = want.data();
        expected(args);
        EXPECT_TRUE(std::equal(want.begin(), want.end(), got.get())) << rows << " rows, " << k_groups << " groups";
      }
    }
  }
}

TEST(Int8Gemm, TheAmxMicrokernelGivesTheSameSums) { expect_same_sums({emulated_int8_amx, {32}}, emulated_dot<32>); }

TEST(Int8Gemm, MicrokernelsOfExtensionsGiveTheSameSums) {
  testing::for_each_isa([](Isa isa) {
    const FeatureSet features = features_of(isa);
    if (features.has(Feature::avx512_vnni)) expect_same_sums({vnni_microkernel(), {32}}, emulated_dot<32>);
    if (features.has(Feature::amx)) expect_same_sums({amx_int8_microkernel(), {32}}, emulated_dot<32>);
    if (features.has(Feature::neon_dotprod)) expect_same_sums({neon_dotprod_microkernel(), {8}}, emulated_dot<8>);
    if (features.has(Feature::neon_i8mm)) {
      expect_same_sums({neon_i8mm_microkernel(), kNeonMatrixPanel}, emulated_dot<8, 2>);
    }
  });
}

TEST(Int8Gemm, OfGivenInt8ValuesEqualsThatOfTheirDequantizedWeight) {
  constexpr int64_t kOut = 40, kIn = 97;
  const Problem problem(13, kIn, kOut);
  std::vector<int8_t> values(kOut * kIn);
  std::vector<float> scales(kOut);
  for (int64_t c = 0; c < kOut; ++c) {
    scales[c] = quantize_weight_row(problem.weight.data() + c * kIn, kIn, values.data() + c * kIn);
  }
  testing::for_each_isa([&](Isa) {
    const PackedLinear quantized(problem.weight.data(), problem.bias.data(), kOut, kIn, Precision::int8);
    const PackedLinear given(values.data(), scales.data(), problem.bias.data(), kOut, kIn);
    EXPECT_EQ(run(given, problem), run(quantized, problem));
  });
}

// Pairs of (127, 127), as a model that was quantised for VNNI may have, with activations at the upper end of their
// range.  x and W are multiples of integers in the int8 ranges, so quantisation is exact.
TEST(Int8Gemm, IsExactForWeightsBeyondTheSaturationLimit) {
  constexpr int64_t kRows = 13, kOut = 40;
  for (const int64_t in : {2, 9, 64, 301}) {
    Problem problem(kRows, in, kOut);
    for (int64_t i = 0; i < kOut * in; ++i) {
      problem.weight[i] = 0.01f * static_cast<float>(i % in < 2 ? 127 : i % 255 - 127);
    }
    for (int64_t i = 0; i < kRows * in; ++i) problem.x[i] = i % in < 2 ? 2.55f : 0.01f * static_cast<float>(i % 256);
    const std::vector<float> want = run(*make_scalar_int8_gemm(problem.weight.data(), nullptr, kOut, in), problem);
    for_each_int8_gemm(problem, nullptr, [&](const PackedGemm& gemm) {
      testing::expect_close(run(gemm, problem), want, [&](int64_t i) { return 2 * kEps * std::abs(want[i]); });
    });
    std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
    const std::vector<double> exact = problem.expected(Activation::none);
    for (size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(want[i], exact[i], 1e-5 * std::abs(exact[i]) + 1e-4);
  }
}

TEST(Int8Gemm, AppliesActivationAndResidualOverSeveralBlocks) {
  const Problem problem(401, 70, 301);  // more rows and columns than one output block
  const std::vector<float> added = random_floats(401 * 301, 4), scale = random_floats(301, 5);
  const auto reference = make_scalar_int8_gemm(problem.weight.data(), nullptr, problem.out, problem.in);
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::relu}) {
    const Epilogue epilogue{activation, {added.data(), problem.out, scale.data()}};
    const std::vector<float> want = run(*reference, problem, epilogue);
    const double coarse = activation == Activation::gelu ? kCoarseGelu : 0;
    for_each_int8_gemm(problem, nullptr, [&](const PackedGemm& gemm) {
      const ThreadCount threads(3);
      testing::expect_close(run(gemm, problem, epilogue), want, [&](int64_t i) {
        return 1e-6 + 8 * kEps * std::abs(want[i]) + 8 * kEps * 40 + coarse * (1e-2 + std::abs(want[i] - added[i]));
      });
    });
  }
}

// Every row, one row in a block, several in a block, a first row that is not row 0.
TEST(Int8Gemm, TwoTermRowsEqualTheReference) {
  struct Case {
    int64_t rows, first, stride;
  };
  for (const auto& [rows, first, stride] : {Case{7, 0, 1}, Case{200, 0, 1}, Case{401, 0, 5}, Case{394, 0, 197},
                                            Case{401, 0, 100}, Case{9, 0, 50}, Case{401, 3, 7}, Case{300, 250, 1}}) {
    const Problem problem(rows, 70, 150);
    const std::vector<float> added = random_floats(rows * 150, 4);
    const Epilogue epilogue{.activation = Activation::relu, .residual = {added.data(), problem.out}};
    const TwoTermRows two_term{.first = first, .stride = stride};
    const auto reference = make_scalar_int8_gemm(problem.weight.data(), problem.bias.data(), problem.out, problem.in);
    const std::vector<float> want = run(*reference, problem, epilogue, two_term);
    for_each_int8_gemm(problem, problem.bias.data(), [&](const PackedGemm& gemm) {
      const ThreadCount threads(3);
      // The results are below 80 and rounded five times.
      testing::expect_close(run(gemm, problem, epilogue, two_term), want,
                            [&](int64_t i) { return kEps * (5 * 80 + std::abs(want[i])); });
    });
  }
}

// The weight is a multiple of int8 values, so the quantisation of x is the only error.  A low term divides x's scale by
// 254.
TEST(Int8Gemm, TwoTermRowsAreMorePreciseAndLeaveOtherRowsUnchanged) {
  constexpr int64_t kStride = 10;
  Problem problem(23, 300, 40);
  for (int64_t i = 0; i < 40 * 300; ++i) problem.weight[i] = 0.01f * static_cast<float>(i % 300 == 0 ? 127 : i % 63);
  const std::vector<double> want = problem.expected(Activation::none);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::int8);
    const std::vector<float> one_term = run(linear, problem), two_term = run(linear, problem, {.stride = kStride});
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      if (i / problem.out % kStride != 0) {
        EXPECT_EQ(two_term[i], one_term[i]);
        continue;
      }
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double low_scale = activation_scale(x, problem.in) / 254;
      double bound = problem.tolerance(i);
      for (int64_t p = 0; p < problem.in; ++p) bound += std::abs(w[p]) * low_scale / 2;
      EXPECT_NEAR(two_term[i], want[i], bound);
    }
  });
}

// One input and one weight make an accumulator that is exact up to fp32 rounding, so only GELU's error is seen.
TEST(Int8Gemm, CoarseGeluIsWithinItsErrorBound) {
  Problem problem(4001, 1, 1);
  for (int64_t i = 0; i < problem.rows; ++i) problem.x[i] = static_cast<float>(i - 2000) * 0.005f;  // [−10, 10]
  problem.weight[0] = 1;
  std::vector<double> want;
  for (const float x : problem.x) want.push_back(scalar::activate<double>(Activation::gelu, x));
  for_each_int8_gemm(problem, nullptr, [&](const PackedGemm& gemm) {
    testing::expect_close(run(gemm, problem, {Activation::gelu}), want,
                          [&](int64_t i) { return kCoarseGelu * (1e-2 + std::abs(want[i])); });
  });
}

// Rounding changes each factor by at most half of its scale.
TEST(Int8Gemm, ErrorIsWithinTheQuantizationBound) {
  const Problem problem(9, 300, 40);
  const std::vector<double> want = problem.expected(Activation::none);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), problem.out, problem.in, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double scale_x = activation_scale(x, problem.in), scale_w = weight_scale(w, problem.in);
      double bound = 1e-4;
      for (int64_t p = 0; p < problem.in; ++p) {
        bound += std::abs(x[p]) * scale_w / 2 + std::abs(w[p]) * scale_x / 2 + scale_x * scale_w / 4;
      }
      EXPECT_NEAR(y[i], want[i], bound);
      EXPECT_NEAR(y[i], want[i], 6 * std::sqrt(300.0) * (scale_x + scale_w));  // rounding errors are independent
    }
    EXPECT_LT(linear.packed_bytes(), 300 * 48 * sizeof(float));
  });
}

// x as GELU gives it, far above 0 and little below it.  The expected squared error of rounding is scale² / 12.
TEST(Int8Gemm, AsymmetricRangeUsesAllLevelsForPositiveActivations) {
  Problem problem(9, 300, 40);
  for (float& x : problem.x) x = std::max(x, -0.17f);
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
  const std::vector<double> want = problem.expected(Activation::none);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), nullptr, problem.out, problem.in, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    double squared_error = 0, expected_squared_error = 0;
    for (int64_t i = 0; i < problem.rows * problem.out; ++i) {
      const float *x = &problem.x[i / problem.out * problem.in], *w = &problem.weight[i % problem.out * problem.in];
      const double scale_x = activation_scale(x, problem.in), scale_w = weight_scale(w, problem.in);
      for (int64_t p = 0; p < problem.in; ++p) {
        expected_squared_error += (w[p] * scale_x * w[p] * scale_x + x[p] * scale_w * x[p] * scale_w) / 12;
      }
      squared_error += (y[i] - want[i]) * (y[i] - want[i]);
    }
    EXPECT_LT(squared_error, 1.3 * expected_squared_error);  // both are sums over 360 results
  });
}

// The largest values and pairs within the limit, with x at both ends of its range.
TEST(Int8Gemm, IsExactAtTheSaturationLimit) {
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

TEST(Int8Gemm, AValueThatIsNotFiniteMakesItsRowNaNOnly) {
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

TEST(Int8Gemm, RowsOfZerosGiveTheBias) {
  Problem problem(3, 10, 4);
  std::fill(problem.x.begin(), problem.x.end(), 0.0f);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), 4, 10, Precision::int8);
    const std::vector<float> y = run(linear, problem);
    for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y[i], problem.bias[i % 4]);
  });
}

// More inputs could overflow an accumulator: 65,000 · 255 · 127 is just below 2^31.
TEST(PackedLinear, OfTooManyInputsForInt8IsFp32) {
  testing::for_each_isa([](Isa) {
    for (const int64_t in : {65'000, 65'001}) {
      const std::vector<float> weight(in, 0.5f), x(in, 1.0f);
      const PackedLinear linear(weight.data(), nullptr, 1, in, Precision::int8);
      EXPECT_EQ(linear.arithmetic(), in <= 65'000 ? Arithmetic::int8 : Arithmetic::fp32);
      float y = 0;
      Scratch scratch(linear.scratch_bytes({.count = 1}));
      linear.run({x.data(), in}, {&y, 1}, {.count = 1}, {}, scratch.aligned());
      EXPECT_NEAR(y, 0.5 * static_cast<double>(in), 0.02 * static_cast<double>(in));
    }
    const std::vector<int8_t> values(65'001);
    const float scale = 1;
    EXPECT_THROW(PackedLinear(values.data(), &scale, nullptr, 1, 65'001), std::logic_error);
  });
}

}  // namespace
}  // namespace vitrail::kernels
