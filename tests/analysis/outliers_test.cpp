// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/outliers.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

Tensor axes() { return Tensor::from<float>({4, 2}, {1, 0, 1, 0, 0.8f, 0.6f, 0, 1}); }

TEST(NeighborDistances, AreMeansOverTheNearestOtherRows) {
  const auto distances = neighbor_distances(axes(), 2);
  EXPECT_NEAR(distances[0].mean, (0 + 0.2) / 2, 1e-6);
  EXPECT_NEAR(distances[2].mean, 0.2, 1e-6);
  EXPECT_NEAR(distances[3].mean, (0.4 + 1) / 2, 1e-6);
  EXPECT_EQ(distances[3].nearest, 2);
}

// A row is never its own neighbour, though the lower index of equal rows is found first.
TEST(NeighborDistances, ACopyIsANeighbour) {
  const auto distances = neighbor_distances(axes(), 1);
  EXPECT_EQ(distances[0].nearest, 1);
  EXPECT_EQ(distances[1].nearest, 0);
  EXPECT_NEAR(distances[1].mean, 0, 1e-6);
}

TEST(NeighborDistances, AreOverAllRowsIfThereAreFewer) {
  EXPECT_NEAR(neighbor_distances(axes(), 10)[0].mean, (0 + 0.2 + 1) / 3, 1e-6);
  const auto single = neighbor_distances(Tensor::from<float>({1, 2}, {1, 0}), 10);
  EXPECT_EQ(single[0].nearest, -1);
  EXPECT_EQ(single[0].mean, 0);
}

// Quartiles 2 and 4 of 1 to 5.
TEST(OuterFence, IsThreeTimesTheDistanceOfTheQuartilesAboveTheThird) {
  EXPECT_DOUBLE_EQ(outer_fence({5, 3, 1, 4, 2}), 4 + 3 * 2);
  EXPECT_DOUBLE_EQ(outer_fence({1, 2}), 1.75 + 3 * 0.5);
  EXPECT_ERROR(testing::error_of([] { outer_fence({}); }), "outer fence", "none");
}

}  // namespace
}  // namespace vitrail::analysis
