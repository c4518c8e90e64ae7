// SPDX-License-Identifier: Apache-2.0
// GEMMs with rows that are longer than the matrix: gemm() and the one of builds without oneDNN.
#include "vitrail/kernels/gemm/packing_gemm_internal.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/kernels/kernel_testing.h"
#include "vitrail/kernels/gemm/linear.h"

namespace vitrail::kernels {
namespace {

using testing::kEps;

using Gemm = void (*)(bool, bool, int64_t, int64_t, int64_t, const float*, int64_t, const float*, int64_t, bool, float*,
                      int64_t);

// Every transposition, sizes around a register tile, and memory beside the result that must not change.
void expect_gemm(Gemm multiply) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {17, 33, 20}, {40, 70, 300}}) {
    for (int form = 0; form < 8; ++form) {
      const bool ta = form & 1, tb = form & 2, accumulate = form & 4;
      const int64_t lda = (ta ? m : k) + 3, ldb = (tb ? k : n) + 2, ldc = n + 5;
      const std::vector<float> a = testing::random_floats((ta ? k : m) * lda, 1),
                               b = testing::random_floats((tb ? n : k) * ldb, 2),
                               before = testing::random_floats(m * ldc, 3);
      std::vector<float> c = before;
      multiply(ta, tb, m, n, k, a.data(), lda, b.data(), ldb, accumulate, c.data(), ldc);
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < ldc; ++j) {
          if (j >= n) {
            ASSERT_EQ(c[i * ldc + j], before[i * ldc + j]) << "beside the result";
            continue;
          }
          double want = accumulate ? before[i * ldc + j] : 0.0, size = std::abs(want);
          for (int64_t p = 0; p < k; ++p) {
            const double term = double{a[ta ? p * lda + i : i * lda + p]} * b[tb ? j * ldb + p : p * ldb + j];
            want += term;
            size += std::abs(term);
          }
          ASSERT_NEAR(c[i * ldc + j], want, kEps * static_cast<double>(k + 2) * size)
              << m << " " << n << " " << k << ", form " << form << ", element " << i << " " << j;
        }
      }
    }
  }
}

TEST(Gemm, TakesRowsLongerThanItsMatrices) {
  testing::for_each_isa([](Isa) { expect_gemm(gemm); });
}

TEST(PackingGemm, MultipliesAsGemm) {
  testing::for_each_isa([](Isa isa) {
    if (isa != Isa::scalar) expect_gemm(packing_gemm);
  });
}

}  // namespace
}  // namespace vitrail::kernels
