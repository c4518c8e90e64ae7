// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/linear.h"

#include <atomic>
#include <limits>
#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::kEps;
using testing::Problem;
using testing::random_floats;
using testing::Scratch;

const std::vector<int64_t> kGemmSizes{1, 2, 5, 6, 7, 11, 12, 13, 16, 17, 31, 33, 64, 97};

// Runs with a scratch of the size it asks for, from an aligned address.
void run(const PackedGemm& gemm, const float* x, int64_t ldx, float* y, int64_t ldy, int64_t rows,
         const Epilogue& epilogue = {}) {
  Scratch scratch(gemm.scratch_bytes({.count = rows}));
  gemm.run({.x = {x, ldx}, .y = {y, ldy}, .rows = {.count = rows}, .epilogue = epilogue, .scratch = scratch.aligned()});
}

using Body = std::function<void(const PackedGemm&)>;

// body(GEMM) for the fp32 implementation of each instruction set, and for oneDNN's.
void for_each_gemm(const float* weight, const float* bias, int64_t out, int64_t in, const Body& body) {
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return body(*make_scalar_gemm(weight, bias, out, in));
    body(*make_fp32_gemm(weight, bias, out, in));
    if (isa != available_isas().back() || !onednn::available() || out == 0 || in == 0) return;
    SCOPED_TRACE("oneDNN");
    if (const auto gemm = make_onednn_gemm(weight, bias, out, in)) body(*gemm);
  });
}

TEST(PackedGemm, MatchesTheDoubleReferenceAtEverySize) {
  for (int64_t out : kGemmSizes) {
    for (int64_t in : kGemmSizes) {
      const Problem problem(13, in, out);
      const std::vector<double> want = problem.expected(Activation::none);
      for_each_gemm(problem.weight.data(), problem.bias.data(), out, in, [&](const PackedGemm& gemm) {
        const Buffer x(problem.x, 1);
        Buffer y(13 * out, 3);
        run(gemm, x.data(), in, y.data(), out, 13);
        y.check();
        testing::expect_close(y.values(), want, [&](int64_t i) { return problem.tolerance(i); });
      });
    }
  }
}

TEST(PackedGemm, CoversSeveralBlocksOfRowsAndOfK) {
  const Problem problem(401, 900, 35);
  for_each_gemm(problem.weight.data(), problem.bias.data(), 35, 900, [&](const PackedGemm& gemm) {
    std::vector<float> y(401 * 35);
    run(gemm, problem.x.data(), 900, y.data(), 35, 401);
    testing::expect_close(y, problem.expected(Activation::none), [&](int64_t i) { return problem.tolerance(i); });
  });
}

TEST(PackedGemm, CoversSeveralBlocksOfColumns) {
  const Problem problem(3, 20, 333);
  for_each_gemm(problem.weight.data(), problem.bias.data(), 333, 20, [&](const PackedGemm& gemm) {
    std::vector<float> y(3 * 333);
    run(gemm, problem.x.data(), 20, y.data(), 333, 3);
    testing::expect_close(y, problem.expected(Activation::none), [&](int64_t i) { return problem.tolerance(i); });
  });
}

TEST(PackedGemm, AppliesBiasAndEveryActivation) {
  const Problem problem(7, 37, 21);
  for (Activation activation :
       {Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu, Activation::relu, Activation::silu}) {
    SCOPED_TRACE(name_of(activation));
    const std::vector<double> want = problem.expected(activation);
    for_each_gemm(problem.weight.data(), problem.bias.data(), 21, 37, [&](const PackedGemm& gemm) {
      std::vector<float> y(7 * 21);
      run(gemm, problem.x.data(), 37, y.data(), 21, 7, {activation});
      // No activation has a slope above 1.13; the other terms are its own rounding (activation_test).
      testing::expect_close(
          y, want, [&](int64_t i) { return 1.13 * problem.tolerance(i) + 4 * kEps * std::abs(want[i]) + 1e-6; });
    });
  }
}

TEST(PackedGemm, AddsTheScaledResidualAlsoInPlaceAndAfterAnActivation) {
  const Problem problem(29, 300, 37);
  const std::vector<float> residual = random_floats(29 * 40, 5), scale = random_floats(37, 6);
  for (Activation activation : {Activation::none, Activation::relu}) {
    const std::vector<double> result = problem.expected(activation);
    for (const float* factor : {scale.data(), static_cast<const float*>(nullptr)}) {
      for_each_gemm(problem.weight.data(), problem.bias.data(), 37, 300, [&](const PackedGemm& gemm) {
        std::vector<float> y(29 * 40, 8.0f), in_place = residual;
        run(gemm, problem.x.data(), 300, y.data(), 40, 29, {activation, {residual.data(), 40, factor}});
        run(gemm, problem.x.data(), 300, in_place.data(), 40, 29, {activation, {in_place.data(), 40, factor}});
        for (int64_t i = 0; i < 29 * 37; ++i) {
          const int64_t at = i / 37 * 40 + i % 37;
          const double s = factor ? scale[i % 37] : 1.0, want = residual[at] + s * result[i];
          EXPECT_NEAR(y[at], want,
                      std::abs(s) * problem.tolerance(i) + kEps * (std::abs(want) + std::abs(s * result[i])));
          EXPECT_EQ(y[at], in_place[at]);
        }
        for (int64_t r = 0; r < 29; ++r) EXPECT_EQ(y[r * 40 + 38], 8.0f);
        // The rows of the residual may be longer than those of the result.
        std::vector<float> apart(29 * 37);
        run(gemm, problem.x.data(), 300, apart.data(), 37, 29, {activation, {residual.data(), 40, factor}});
        for (int64_t i = 0; i < 29 * 37; ++i) EXPECT_EQ(apart[i], y[i / 37 * 40 + i % 37]);
      });
    }
  }
}

TEST(PackedGemm, TakesStridesAndNoBias) {
  Problem problem(9, 19, 18);
  std::fill(problem.bias.begin(), problem.bias.end(), 0.0f);
  for_each_gemm(problem.weight.data(), nullptr, 18, 19, [&](const PackedGemm& gemm) {
    std::vector<float> x(9 * 24), y(9 * 23, 7.0f), dense;
    for (int64_t r = 0; r < 9; ++r) std::copy_n(&problem.x[r * 19], 19, &x[r * 24]);
    run(gemm, x.data(), 24, y.data(), 23, 9);
    for (int64_t r = 0; r < 9; ++r) {
      dense.insert(dense.end(), &y[r * 23], &y[r * 23] + 18);
      for (int64_t c = 18; c < 23; ++c) EXPECT_EQ(y[r * 23 + c], 7.0f);
    }
    testing::expect_close(dense, problem.expected(Activation::none), [&](int64_t i) { return problem.tolerance(i); });
  });
}

TEST(PackedGemm, PropagatesNaNInItsRowOnly) {
  for (Activation activation : {Activation::none, Activation::gelu, Activation::relu}) {
    Problem problem(15, 20, 20);
    problem.x[14 * 20 + 3] = std::numeric_limits<float>::quiet_NaN();
    for_each_gemm(problem.weight.data(), problem.bias.data(), 20, 20, [&](const PackedGemm& gemm) {
      std::vector<float> y(15 * 20);
      run(gemm, problem.x.data(), 20, y.data(), 20, 15, {activation});
      for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(std::isnan(y[i]), i / 20 == 14) << i;
    });
  }
}

// One packed weight, three numbers of rows, two callers at once.
TEST(PackedGemm, ConcurrentCallersGetTheBitsOfASingleCaller) {
  const Problem problem(200, 300, 50);
  for_each_gemm(problem.weight.data(), problem.bias.data(), 50, 300, [&](const PackedGemm& gemm) {
    std::map<std::pair<int, int64_t>, std::vector<float>> alone;
    auto result = [&](int64_t rows) {
      std::vector<float> y(rows * 50);
      run(gemm, problem.x.data(), 300, y.data(), 50, rows, {Activation::gelu});
      return y;
    };
    for (int threads : {1, 2}) {
      ThreadCount count(threads);
      for (int64_t rows : {1, 25, 200}) alone[{threads, rows}] = result(rows);
    }
    std::atomic<int> wrong{0};
    auto caller = [&](int threads) {
      ThreadCount count(threads);
      for (int repeat = 0; repeat < 3; ++repeat) {
        for (int64_t rows : {1, 25, 200}) wrong += result(rows) != alone.at({threads, rows});
      }
    };
    std::thread first(caller, 1), second(caller, 2);
    first.join();
    second.join();
    EXPECT_EQ(wrong, 0);
  });
}

// A data-parallel batch does this: what was prepared for all threads is run by one.
TEST(PackedGemm, GivesTheSameInsideAParallelLoop) {
  ThreadCount count(2);
  for (const auto& [rows, out] : {std::pair<int64_t, int64_t>{197, 96}, {1, 10}, {2, 1000}}) {
    const Problem problem(rows, 3072, out);
    for_each_gemm(problem.weight.data(), problem.bias.data(), out, 3072, [&](const PackedGemm& gemm) {
      gemm.prepare(problem.rows, 3072, problem.out);
      const std::vector<float> alone = testing::run(gemm, problem, {Activation::gelu});
      std::vector<std::vector<float>> inside(2);
      parallel_for(0, 2, 1, [&](int64_t first, int64_t last) {
        for (int64_t i = first; i < last; ++i) inside[i] = testing::run(gemm, problem, {Activation::gelu});
      });
      for (const auto& y : inside) {
        for (size_t i = 0; i < y.size(); ++i) {
          ASSERT_NEAR(y[i], alone[i], 2 * problem.tolerance(static_cast<int64_t>(i))) << i;
        }
      }
    });
  }
}

TEST(Fp32Gemm, GivesARowTheSameBitsInEveryBatchAndWithAnyThreads) {
  const Problem problem(200, 900, 50);
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    const auto gemm = make_fp32_gemm(problem.weight.data(), problem.bias.data(), 50, 900);
    std::vector<float> rows(200 * 50), batch(200 * 50);
    for (int64_t r = 0; r < 200; ++r) run(*gemm, &problem.x[r * 900], 900, &rows[r * 50], 50, 1, {Activation::gelu});
    ThreadCount count(3);
    run(*gemm, problem.x.data(), 900, batch.data(), 50, 200, {Activation::gelu});
    EXPECT_EQ(rows, batch);
  });
}

TEST(PackedLinear, ZeroRowsWriteNothingAndZeroInputsGiveTheBias) {
  testing::for_each_isa([](Isa) {
    const float bias[3] = {1, 2, 3};
    const PackedLinear linear(nullptr, bias, 3, 0);
    std::vector<float> y(6, 9.0f);
    linear.run({}, {y.data(), 3}, {.count = 0}, {}, nullptr);
    EXPECT_EQ(y, std::vector<float>(6, 9.0f));
    linear.run({}, {y.data(), 3}, {.count = 2}, {}, nullptr);
    EXPECT_EQ(y, (std::vector<float>{1, 2, 3, 1, 2, 3}));
  });
}

TEST(PackedLinear, KeepsItsInstructionSetWhenAnotherIsForced) {
  const Problem problem(5, 33, 18);
  testing::for_each_isa([&](Isa) {
    const PackedLinear linear(problem.weight.data(), problem.bias.data(), 18, 33);
    force_isa(Isa::scalar);
    linear.prepare(5, 33, 18);
    testing::expect_close(testing::run(linear, problem), problem.expected(Activation::none),
                          [&](int64_t i) { return problem.tolerance(i); });
    EXPECT_GE(linear.packed_bytes(), 33 * 18 * sizeof(float));
  });
}

TEST(Gemm, MatchesTheDoubleReferenceInEveryTransposition) {
  testing::for_each_isa([](Isa) {
    for (int64_t m : {1, 7, 33}) {
      for (int64_t n : {1, 16, 37}) {
        for (int64_t k : {0, 1, 19, 64}) {
          const std::vector<float> a = random_floats(m * k, 1), b = random_floats(k * n, 2),
                                   c = random_floats(m * n, 3);
          for (int form = 0; form < 8; ++form) {
            const bool ta = form & 1, tb = form & 2, accumulate = form & 4;
            const int64_t lda = std::max<int64_t>(1, ta ? m : k), ldb = std::max<int64_t>(1, tb ? k : n);
            std::vector<float> got = c;
            gemm(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, accumulate, got.data(), n);
            std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end()), want(c.begin(), c.end());
            scalar::gemm<double>(ta, tb, m, n, k, wide_a.data(), lda, wide_b.data(), ldb, accumulate, want.data(), n);
            // Σ |a b| of standard normal values is below 3 k for these seeds.
            testing::expect_close(got, want, [&](int64_t) { return kEps / 2 * (k + 2.0) * (3.0 * k + 4); });
          }
        }
      }
    }
  });
}

// Panels are complete; a quantised weight has a scale, a bias and, in int8, a compensation for each of their columns.
TEST(PackedGemm, StatesItsBytes) {
  constexpr int64_t kOut = 21, kIn = 10;
  const Problem problem(1, kIn, kOut);
  EXPECT_EQ(make_scalar_gemm(problem.weight.data(), nullptr, kOut, kIn)->packed_bytes(), (210u + 21u) * 4u);
  EXPECT_EQ(make_scalar_int8_gemm(problem.weight.data(), nullptr, kOut, kIn)->packed_bytes(), 210u + 2u * 21u * 4u);
  testing::for_each_isa([&](Isa isa) {
    if (isa == Isa::scalar) return;
    const int64_t width = int8_panel_columns(), columns = (kOut + width - 1) / width * width;
    const auto fp32 = make_fp32_gemm(problem.weight.data(), nullptr, kOut, kIn);
    EXPECT_EQ(fp32->packed_bytes(), static_cast<size_t>(columns * (kIn + 1) * 4));
    EXPECT_EQ(fp32->scratch_bytes({.count = 9}), 0u);
    EXPECT_EQ(fp32->arithmetic(), Arithmetic::fp32);
    EXPECT_EQ(fp32->library(), nullptr);
    EXPECT_FALSE(fp32->takes_correction());
    const auto int8 = make_int8_gemm(problem.weight.data(), nullptr, kOut, kIn, int8_microkernel());
    EXPECT_EQ(int8->packed_bytes(), static_cast<size_t>(columns * (3 + 3) * 4)) << "3 groups of 4 values";
    EXPECT_TRUE(int8->takes_correction());
    EXPECT_EQ(int8->arithmetic(), Arithmetic::int8);
    // A row has 3 groups behind its scale and zero point.
    EXPECT_EQ(int8->scratch_bytes({.count = 0}), 0u);
    EXPECT_EQ(int8->scratch_bytes({.count = 13}), 320u) << "(2 + 13 · 5) · 4, rounded up to 64";
    EXPECT_EQ(int8->scratch_bytes({.count = 13, .two_term = {.stride = 5}}), 384u) << "three low terms";
    const auto int16 = make_int16_gemm(problem.weight.data(), nullptr, kOut, kIn, nullptr);
    EXPECT_EQ(int16->packed_bytes(), 32u * (5u + 2u) * 4u) << "5 groups of 2 values";
    EXPECT_EQ(int16->arithmetic(), Arithmetic::int16);
    EXPECT_EQ(int16->scratch_bytes({.count = 13, .two_term = {.stride = 5}}), 384u) << "(2 + 13 · 7) · 4";
    const auto bf16 = make_bf16_gemm(problem.weight.data(), nullptr, kOut, kIn, nullptr, {8, 2}, kAmxRows);
    EXPECT_EQ(bf16->packed_bytes(), 24u * (6u + 2u) * 4u) << "three panels, pairs of groups";
    EXPECT_EQ(bf16->arithmetic(), Arithmetic::bf16);
    EXPECT_FALSE(bf16->takes_correction());
    EXPECT_EQ(bf16->scratch_bytes({.count = 2}), 192u) << "the first row begins at 16 groups, each has 16";
  });
}

TEST(PackedLinear, TellsWhatItIsAndMoves) {
  const Problem problem(3, 8, 5);
  testing::for_each_isa([&](Isa isa) {
    PackedLinear linear(problem.weight.data(), problem.bias.data(), 5, 8);
    EXPECT_EQ(linear.out_features(), 5);
    EXPECT_EQ(linear.in_features(), 8);
    EXPECT_STREQ(linear.implementation(), name_of(isa));
    EXPECT_EQ(linear.arithmetic(), Arithmetic::fp32);
    const std::vector<float> want = testing::run(linear, problem);
    PackedLinear moved = std::move(linear);
    EXPECT_EQ(testing::run(moved, problem), want);
    PackedLinear int8(problem.weight.data(), problem.bias.data(), 5, 8, Precision::int8);
    EXPECT_TRUE(int8.takes_correction());
    EXPECT_STREQ(int8.implementation(), name_of(isa));
    EXPECT_NE(testing::run(int8, problem), want);
    int8 = std::move(moved);
    EXPECT_EQ(testing::run(int8, problem), want);
    EXPECT_FALSE(int8.takes_correction());
    const std::vector<int8_t> values(8, 2);
    const float scale = 0.5f;
    const PackedLinear given(values.data(), &scale, nullptr, 1, 8);
    EXPECT_EQ(given.in_features(), 8);
    EXPECT_EQ(given.out_features(), 1);
    EXPECT_STREQ(given.implementation(), name_of(isa));
    EXPECT_EQ(given.arithmetic(), Arithmetic::int8);
  });
  const std::vector<int8_t> values(1);
  const float scale = 1;
  try {
    PackedLinear(values.data(), &scale, nullptr, 0, 65'001);
    FAIL() << "no error";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "an int8 weight has more inputs than an int32 accumulator allows");
  }
}

}  // namespace
}  // namespace vitrail::kernels
