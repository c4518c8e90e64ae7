// SPDX-License-Identifier: Apache-2.0
// The wrapper around oneDNN, and the packed layers on it, on every processor.
#include "vitrail/kernels/gemm/onednn_internal.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "tests/kernels/linear_problem.h"
#include "vitrail/base/parallel.h"

namespace vitrail::kernels {
namespace {

using testing::Problem;

class OneDnn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!onednn::available()) GTEST_SKIP() << "built without oneDNN";
  }
};

// x has longer rows than the weight; without a bias it is 0.
TEST_F(OneDnn, PackedMatmulMultipliesAndAddsTheBias) {
  constexpr int64_t kRows = 9, kIn = 40, kOut = 70, kLd = 45;
  Problem problem(kRows, kIn, kOut);
  std::vector<float> x(kRows * kLd, 99.0f);
  for (int64_t r = 0; r < kRows; ++r) std::copy_n(&problem.x[r * kIn], kIn, &x[r * kLd]);
  const onednn::PackedMatmul with(problem.weight.data(), problem.bias.data(), kOut, kIn),
      without(problem.weight.data(), nullptr, kOut, kIn);
  EXPECT_EQ(with.packed_bytes(), without.packed_bytes() + kOut * sizeof(float));
  EXPECT_GE(without.packed_bytes(), kOut * kIn * sizeof(float));
  for (const int64_t rows : {kRows, int64_t{1}, int64_t{4}, kRows}) {
    std::vector<float> y(static_cast<size_t>(kRows * kOut), 7.0f), plain = y;
    with.prepare(rows, kLd);
    with.run(x.data(), kLd, y.data(), rows);
    without.run(x.data(), kLd, plain.data(), rows);
    const std::vector<double> want = problem.expected(Activation::none);
    for (int64_t i = 0; i < kRows * kOut; ++i) {
      if (i / kOut >= rows) {
        ASSERT_EQ(y[i], 7.0f) << "after the last row";
        continue;
      }
      ASSERT_NEAR(y[i], want[i], 2 * problem.tolerance(i)) << i;
      ASSERT_NEAR(plain[i], want[i] - problem.bias[i % kOut], 2 * problem.tolerance(i)) << i;
    }
  }
}

// Panels of 384 columns (a third of 1,100, in complete blocks of 64), and rows in three parts.
TEST_F(OneDnn, GemmDividesRowsAndColumnsAndAppliesTheEpilogue) {
  constexpr int64_t kRows = 300, kIn = 48, kOut = 1100, kLd = 1200;
  const Problem problem(kRows, kIn, kOut);
  const auto gemm = make_onednn_gemm(problem.weight.data(), problem.bias.data(), kOut, kIn);
  ASSERT_NE(gemm, nullptr);
  EXPECT_STREQ(gemm->library(), "oneDNN");
  EXPECT_EQ(gemm->arithmetic(), Arithmetic::fp32);
  EXPECT_FALSE(gemm->takes_correction());
  EXPECT_EQ(gemm->scratch_bytes({.count = kRows}), 0u);
  EXPECT_GE(gemm->packed_bytes(), kOut * (kIn + 1) * sizeof(float));
  gemm->prepare(0, kIn, kLd);
  gemm->prepare(kRows, kIn, kLd);
  const std::vector<float> residual = testing::random_floats(kRows * kLd, 5), scale = testing::random_floats(kOut, 6);
  for (const Activation kind : {Activation::none, Activation::relu}) {
    const std::vector<double> result = problem.expected(kind);
    for (const bool added : {false, true}) {
      for (const float* const factor : {scale.data(), static_cast<const float*>(nullptr)}) {
        if (!added && factor) continue;
        std::vector<float> y(kRows * kLd, 8.0f);
        const ThreadCount threads(2);
        const Residual to{added ? residual.data() : nullptr, kLd, factor};
        gemm->run({{problem.x.data(), kIn}, {y.data(), kLd}, {.count = kRows}, {kind, to}, nullptr});
        for (int64_t i = 0; i < kRows * kLd; ++i) {
          const int64_t row = i / kLd, column = i % kLd, at = row * kOut + column;
          if (column >= kOut) {
            ASSERT_EQ(y[i], 8.0f) << "between the rows";
            continue;
          }
          const double s = factor ? factor[column] : 1.0, want = result[at] * s + (added ? residual[i] : 0);
          ASSERT_NEAR(y[i], want, 2 * std::abs(s) * problem.tolerance(at) + 1e-6) << row << " " << column;
        }
      }
    }
  }
}

// The threads of OpenMP wait in busy loops, so there are none.
TEST_F(OneDnn, ComputesOnTheCallingThreadAndLeavesTheCountOfOpenMp) {
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"), std::filesystem::directory_iterator());
  };
  auto* const openmp_threads = reinterpret_cast<int (*)()>(::dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  auto* const set_openmp_threads = reinterpret_cast<void (*)(int)>(::dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  const auto openmp_count = [&] { return openmp_threads ? openmp_threads() : 0; };
  const int at_first = openmp_count();
  if (set_openmp_threads) set_openmp_threads(3);
  const ThreadCount one(1);
  const auto before = threads();
  const int count = openmp_count();
  constexpr int64_t kSize = 400;
  const Problem problem(kSize, kSize, kSize);
  std::vector<float> y(kSize * kSize);
  const onednn::PackedMatmul packed(problem.weight.data(), problem.bias.data(), kSize, kSize);
  packed.prepare(kSize, kSize);
  packed.run(problem.x.data(), kSize, y.data(), kSize);
  onednn::sgemm(false, true, kSize, kSize, kSize, problem.x.data(), kSize, problem.weight.data(), kSize, false,
                y.data(), kSize);
  EXPECT_EQ(threads(), before);
  EXPECT_EQ(openmp_count(), count);
  if (set_openmp_threads) set_openmp_threads(at_first);
}

TEST_F(OneDnn, SgemmOfSizesThatDoNotFitIsAnError) {
  const std::vector<float> a(16, 1.0f);
  std::vector<float> c(16);
  try {  // the rows of a are longer than the matrix has room for
    onednn::sgemm(false, false, 4, 4, 4, a.data(), 2, a.data(), 4, false, c.data(), 4);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("oneDNN: sgemm failed with status "), std::string::npos) << error.what();
  }
}

// The result is replaced, or added to.
TEST_F(OneDnn, SgemmTakesEveryForm) {
  constexpr int64_t kM = 5, kN = 7, kK = 3;
  for (int form = 0; form < 8; ++form) {
    const bool ta = form & 1, tb = form & 2, accumulate = form & 4;
    const int64_t lda = (ta ? kM : kK) + 1, ldb = (tb ? kK : kN) + 2, ldc = kN + 3;
    const std::vector<float> a = testing::random_floats(lda * 5, 1), b = testing::random_floats(ldb * 7, 2);
    std::vector<float> c(kM * ldc, 2.0f);
    onednn::sgemm(ta, tb, kM, kN, kK, a.data(), lda, b.data(), ldb, accumulate, c.data(), ldc);
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < ldc; ++j) {
        double want = j < kN ? (accumulate ? 2 : 0) : 2;
        for (int64_t p = 0; p < kK && j < kN; ++p) {
          want += double{a[ta ? p * lda + i : i * lda + p]} * b[tb ? j * ldb + p : p * ldb + j];
        }
        EXPECT_NEAR(c[i * ldc + j], want, 1e-5) << "form " << form << ", " << i << " " << j;
      }
    }
  }
}

}  // namespace
}  // namespace vitrail::kernels
