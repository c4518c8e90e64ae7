// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/cholesky_internal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail {
namespace {

TEST(Cholesky, FactorTimesItsTransposeIsTheMatrix) {
  for (const int64_t n : {1, 2, 7, 150}) {
    std::vector<double> matrix(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) matrix[i * n + j] = std::cos(double(i * j)) / double(n);
      matrix[i * n + i] += 3;
    }
    const std::vector<double> factor = cholesky(matrix, n);
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < n; ++k) sum += factor[i * n + k] * factor[j * n + k];
        EXPECT_NEAR(sum, matrix[i * n + j], 1e-13) << n;
        if (j > i) {
          EXPECT_EQ(factor[i * n + j], 0);
        }
      }
    }
  }
}

TEST(Cholesky, RefusesMatricesThatAreNotPositiveDefinite) {
  EXPECT_ANY_THROW(cholesky({1, 2, 2, 1}, 2));
  EXPECT_ANY_THROW(cholesky({0}, 1));
  EXPECT_ANY_THROW(cholesky({std::numeric_limits<double>::quiet_NaN()}, 1));
  EXPECT_ANY_THROW(cholesky({std::numeric_limits<double>::infinity()}, 1));
  EXPECT_ANY_THROW(cholesky({4, 0, 0, 0, 4, 4, 0, 4, 4}, 3)) << "singular in the last row";
}

// The factor of a matrix whose factor has integers.
TEST(Cholesky, ReadsTheLowerTriangleAlone) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> lower{4, none, none, 6, 10, none, -2, 1, 11};
  // L Lᵀ = [[4, 6, −2], [6, 10, 1], [−2, 1, 1 + 16 + p²]]: p² is 11 − 17 < 0, then 26 − 17.
  EXPECT_ERROR(testing::error_of([&] { cholesky(lower, 3); }), "cholesky", "a pivot of -6 in row 2");
  const std::vector<double> definite{4, none, none, 6, 10, none, -2, 1, 26};
  EXPECT_EQ(cholesky(definite, 3), (std::vector<double>{2, 0, 0, 3, 1, 0, -1, 4, 3}));
  EXPECT_TRUE(cholesky({}, 0).empty());
  EXPECT_ERROR(testing::error_of([] { cholesky({0}, 1); }), "cholesky", "a pivot of 0 in row 0");
}

}  // namespace
}  // namespace vitrail
