// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/effective_rank.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace vitrail::analysis {
namespace {

TEST(EffectiveRank, IsTheNumberOfEqualSingularValues) {
  EXPECT_NEAR(effective_rank(Tensor::from<float>({3, 3}, {1, 0, 0, 0, -1, 0, 0, 0, 1})), 3, 1e-12);
  // Equal rows have one direction.
  EXPECT_NEAR(effective_rank(Tensor::from<float>({3, 2}, {2, 1, 2, 1, 2, 1})), 1, 1e-6);
}

TEST(EffectiveRank, IsTheExponentialOfTheEntropyOfTheSingularValues) {
  // Orthogonal rows of lengths 3 and 1: shares 3/4 and 1/4.
  const double entropy = -0.75 * std::log(0.75) - 0.25 * std::log(0.25);
  EXPECT_NEAR(effective_rank(Tensor::from<float>({2, 2}, {0, 3, 1, 0})), std::exp(entropy), 1e-12);
}

// 20 orthogonal rows of 192 columns, and the same as columns: all other eigenvalues are 0.
TEST(EffectiveRank, IsTheSameOfTheTransposeAndOfFewRows) {
  const Tensor rows = Tensor::zeros({20, 192});
  for (int64_t i = 0; i < 20; ++i) rows.data<float>()[i * 192 + 9 * i] = 2;
  EXPECT_NEAR(effective_rank(rows), 20, 1e-9);
  EXPECT_NEAR(effective_rank(rows.permute({1, 0})), 20, 1e-9);
}

TEST(EffectiveRank, IsOneForZeros) { EXPECT_EQ(effective_rank(Tensor::zeros({4, 3})), 1); }

}  // namespace
}  // namespace vitrail::analysis
