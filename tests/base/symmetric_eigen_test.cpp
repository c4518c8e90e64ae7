// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/symmetric_eigen_internal.h"

#include <gtest/gtest.h>

#include <cmath>

#include <limits>
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"

namespace vitrail {
namespace {

double dot(const double* a, const double* b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Checks A v = λ v for every pair, that the vectors are orthonormal and that the values descend.  The method is
// backward stable: errors are within a small multiple of n ε ‖A‖.
void expect_decomposed(const std::vector<double>& a, int64_t n) {
  const SymmetricEigen eigen = symmetric_eigen(a, n);
  double norm = 0;
  for (const double value : a) norm += value * value;
  const double tolerance = 10 * static_cast<double>(n) * 2.3e-16;
  for (int64_t i = 0; i < n; ++i) {
    const double* const v = eigen.vectors.data() + i * n;
    for (int64_t r = 0; r < n; ++r)
      EXPECT_NEAR(dot(a.data() + r * n, v, n), eigen.values[i] * v[r], tolerance * std::sqrt(norm)) << i << ' ' << r;
    for (int64_t j = 0; j <= i; ++j)
      EXPECT_NEAR(dot(v, eigen.vectors.data() + j * n, n), i == j ? 1 : 0, tolerance) << i << ' ' << j;
    if (i > 0) {
      EXPECT_LE(eigen.values[i], eigen.values[i - 1]);
    }
  }
}

std::vector<double> random_symmetric(int64_t n, int64_t rank) {
  std::vector<double> a(static_cast<size_t>(n * n));
  RandomStream random(random_key("eigen", static_cast<uint64_t>(n)));
  for (int64_t k = 0; k < rank; ++k) {
    std::vector<double> v(static_cast<size_t>(n));
    for (double& x : v) x = random.normal();
    const double sign = k % 3 == 0 ? -1 : 1;
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < n; ++j) a[i * n + j] += sign * v[i] * v[j];
    }
  }
  return a;
}

TEST(SymmetricEigen, DecomposesMatricesOfAllSizes) {
  for (const int64_t n : {1, 2, 3, 4, 7, 16, 65}) expect_decomposed(random_symmetric(n, n), n);
}

// Most eigenvalues are 0, as those of the covariance of few images with many features.
TEST(SymmetricEigen, ConvergesForALowRank) { expect_decomposed(random_symmetric(192, 19), 192); }

TEST(SymmetricEigen, RepeatedAndZeroValuesHaveOrthonormalVectors) {
  expect_decomposed(random_symmetric(20, 3), 20);
  expect_decomposed(std::vector<double>(25), 5);
  std::vector<double> identity(36);
  for (int64_t i = 0; i < 6; ++i) identity[i * 7] = 1;
  expect_decomposed(identity, 6);
  EXPECT_TRUE(symmetric_eigen({}, 0).values.empty());
}

TEST(SymmetricEigen, ValuesScaleWithTheMatrix) {
  for (const double scale : {1e-200, 1e-20, 1e100}) {
    std::vector<double> a = random_symmetric(9, 9);
    const SymmetricEigen plain = symmetric_eigen(a, 9);
    for (double& value : a) value *= scale;
    const SymmetricEigen scaled = symmetric_eigen(a, 9);
    for (int64_t i = 0; i < 9; ++i)
      EXPECT_NEAR(scaled.values[i] / scale, plain.values[i], 1e-13 * std::abs(plain.values[0]));
  }
}

TEST(SymmetricEigen, MatchesTheClosedFormOfATridiagonalMatrix) {
  const SymmetricEigen eigen = symmetric_eigen({2, 1, 0, 1, 2, 1, 0, 1, 2}, 3);  // 2 + √2, 2, 2 − √2
  EXPECT_NEAR(eigen.values[0], 2 + std::sqrt(2.0), 1e-15);
  EXPECT_NEAR(eigen.values[1], 2, 1e-15);
  EXPECT_NEAR(eigen.values[2], 2 - std::sqrt(2.0), 1e-15);
}

TEST(SymmetricEigen, NonFiniteElementsAreAnError) { EXPECT_THROW(symmetric_eigen({NAN, 0, 0, 1}, 2), Error); }

TEST(SymmetricEigen, ADiagonalMatrixHasItsElementsInDescendingOrder) {
  const SymmetricEigen eigen = symmetric_eigen({1, 0, 0, 0, 5, 0, 0, 0, -7}, 3);
  EXPECT_EQ(eigen.values, (std::vector<double>{5, 1, -7}));
  const size_t axes[] = {1, 0, 2};
  for (size_t i = 0; i < 3; ++i) {
    for (size_t j = 0; j < 3; ++j) EXPECT_EQ(std::abs(eigen.vectors[i * 3 + j]), j == axes[i] ? 1 : 0) << i << ' ' << j;
  }
}

// [[4, 1], [1, 4 + d]] has the values 4 + d / 2 ± √(1 + d² / 4).
TEST(SymmetricEigen, MatchesTheClosedFormOfTwoByTwo) {
  for (const double d : {0.0, 3.0, -8.0}) {
    const SymmetricEigen eigen = symmetric_eigen({4, 1, 1, 4 + d}, 2);
    const double root = std::sqrt(1 + d * d / 4);
    EXPECT_NEAR(eigen.values[0], 4 + d / 2 + root, 1e-14) << d;
    EXPECT_NEAR(eigen.values[1], 4 + d / 2 - root, 1e-14) << d;
    EXPECT_NEAR(eigen.vectors[1] / eigen.vectors[0], eigen.values[0] - 4, 1e-13) << d;
  }
}

TEST(SymmetricEigen, TheErrorTellsTheElement) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_ERROR(testing::error_of([&] { symmetric_eigen({1, 2, 2, -infinity}, 2); }), "eigenvalues", "-inf");
  EXPECT_ERROR(testing::error_of([&] { symmetric_eigen({1, infinity, infinity, 1}, 2); }), "eigenvalues", "inf");
}

}  // namespace
}  // namespace vitrail
