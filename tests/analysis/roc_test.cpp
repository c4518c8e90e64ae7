// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/roc.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

using Positives = std::vector<uint8_t>;
using ScoreList = std::vector<float>;

// sklearn.metrics.roc_auc_score gives 11 / 15: two positives and a negative are equal.
TEST(AreaUnderRoc, CountsTiesHalf) {
  const ScoreList scores{0.1F, 0.4F, 0.4F, 0.8F, 0.3F, 0.9F, 0.4F, 0.2F};
  EXPECT_NEAR(area_under_roc(scores, Positives{0, 0, 1, 1, 0, 0, 1, 0}), 11.0 / 15, 1e-15);
}

TEST(AreaUnderRoc, OfOneClassIsUnknown) {
  EXPECT_TRUE(std::isnan(area_under_roc(ScoreList{1, 2}, Positives{1, 1})));
  EXPECT_TRUE(std::isnan(area_under_roc(ScoreList{1, 2}, Positives{0, 0})));
}

TEST(AreaUnderRoc, RefusesScoresWithoutOrder) {
  const auto message = [](const ScoreList& scores, const Positives& labels) {
    return testing::error_of([&] { area_under_roc(scores, labels); });
  };
  EXPECT_ERROR(message({1, 2}, {1}), "labels", "1");
  EXPECT_ERROR(message({1, std::numeric_limits<float>::quiet_NaN()}, {0, 1}), "scores", "NaN");
}

// Ten negatives; a region of one pixel above all of them, and one of two pixels: one of them is below half of the
// negatives. The mean overlap is 3/4 until half of the negatives are false positives.
TEST(PerRegionOverlap, WeighsSmallRegionsAsLargeOnes) {
  ScoreList scores{99, 98, 4.5F};
  std::vector<int32_t> regions{1, 2, 2};
  for (int i = 0; i < 10; ++i) scores.push_back(static_cast<float>(i)), regions.push_back(0);
  EXPECT_NEAR(per_region_overlap(scores, regions, 2), 0.75, 1e-15);
  EXPECT_NEAR(per_region_overlap(scores, regions, 2, 1), 0.5 * 0.75 + 0.5, 1e-15);
  EXPECT_TRUE(std::isnan(per_region_overlap(ScoreList{1}, std::vector<int32_t>{0}, 0)));
}

}  // namespace
}  // namespace vitrail::analysis
