// SPDX-License-Identifier: Apache-2.0
#include "vitrail/kernels/gemm/linear.h"

#include <atomic>
#include <limits>
#include <map>
#include <thread>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"
#include "vitrail/kernels/gemm/onednn_internal.h"
#include "vitrail/kernels/gemm/packed_gemm_internal.h"
#include "vitrail/kernels/gemm/scalar_gemm_internal.h"

namespace vitrail::kernels {
namespace {

using testing::Buffer;
using testing::Problem;
using testing::random_floats;
using testing::Scratch;

constexpr double kEps = std::numeric_limits<float>::epsilon();

const std::vector<int64_t> kSizes{1, 2, 5, 6, 7, 11, 12, 13, 16, 17, 31, 33, 64, 97};

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
  for (int64_t out : kSizes) {
    for (int64_t in : kSizes) {
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

}  // namespace
}  // namespace vitrail::kernels
