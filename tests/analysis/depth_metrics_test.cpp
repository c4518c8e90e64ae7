// SPDX-License-Identifier: Apache-2.0
// Reference values by NumPy: np.random.default_rng(0), depth = uniform(1, 9, 12), prediction = depth ·
// uniform(0.7, 1.4, 12); inverse = 3 / depth + 0.2 + normal(0, 0.02, 12) aligned by np.linalg.lstsq.
#include "vitrail/analysis/depth_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

using testing::error_of;

const std::vector<float> kDepth{6.09569359F, 3.15829372F, 1.32778823F, 1.1322211F,  7.50616169F, 8.30204487F,
                                5.85308599F, 6.83597231F, 5.34899998F, 8.48057938F, 7.52682829F, 1.02190804F};
const std::vector<float> kPrediction{7.92551708F, 2.28505683F, 1.60763133F, 0.931771457F, 9.7897253F,  8.9580965F,
                                     5.3251276F,  6.80781555F, 3.85033727F, 6.67420149F,  8.80215263F, 1.17829335F};
const std::vector<float> kInverse{0.710220098F, 1.15176034F, 2.44452643F,  2.83122468F,  0.590517163F, 0.565760672F,
                                  0.692357719F, 0.63467139F, 0.757668018F, 0.564566374F, 0.602867484F, 3.14279246F};
const std::vector<float> kAligned{5.87742138F, 3.14640665F, 1.33296144F, 1.1369493F,  7.68603659F, 8.20843792F,
                                  6.09131098F, 6.90254259F, 5.37598705F, 8.23544121F, 7.44952059F, 1.01651275F};
constexpr double kAbsRel = 0.188140789, kRmse = 1.20117262, kDelta1 = 0.583333333;

constexpr float kUnknown = 0, kNaN = std::numeric_limits<float>::quiet_NaN();

TEST(DepthMetrics, AreThoseOfNumPy) {
  const DepthErrors errors = depth_errors(kPrediction, kDepth);
  EXPECT_NEAR(errors.abs_rel, kAbsRel, 1e-6);
  EXPECT_NEAR(errors.rmse, kRmse, 1e-6);
  EXPECT_NEAR(errors.delta1, kDelta1, 1e-9);
  EXPECT_EQ(errors.pixels, 12);
}

TEST(DepthMetrics, AlignmentIsTheLeastSquaresOfTheInverse) {
  const std::vector<float> got = aligned_depth(kInverse, kDepth);
  ASSERT_EQ(got.size(), kAligned.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], kAligned[i], 1e-5 * kAligned[i]) << i;
  std::vector<float> exact;
  for (const float depth : kDepth) exact.push_back(3 / depth + 0.5F);
  EXPECT_NEAR(depth_errors(aligned_depth(exact, kDepth), kDepth).abs_rel, 0, 1e-6) << "any scale and offset";
}

// Unknown depths, as sensors write them, neither count nor take part in the alignment.
TEST(DepthMetrics, UnknownDepthDoesNotCount) {
  const std::vector<float> depth{2, kUnknown, 4, kNaN, -1}, prediction{2.2F, 100, 4, 100, 100};
  const DepthErrors errors = depth_errors(prediction, depth);
  EXPECT_EQ(errors.pixels, 2);
  EXPECT_NEAR(errors.abs_rel, 0.05, 1e-6);
  EXPECT_NEAR(errors.rmse, std::sqrt(0.04 / 2), 1e-6);
  EXPECT_EQ(errors.delta1, 1);
  const std::vector<float> aligned = aligned_depth(std::vector<float>{1, 7, 0.5F, 7, 7}, depth);
  EXPECT_NEAR(aligned[0], 2, 1e-6);
  EXPECT_NEAR(aligned[2], 4, 1e-6);
  EXPECT_TRUE(std::isnan(depth_errors(prediction, std::vector<float>(5)).abs_rel));
}

// The share below 1.25 counts both directions, and no prediction of 0.
TEST(DepthMetrics, DeltaIsOfTheLargerRatio) {
  const std::vector<float> depth{4, 4, 4, 4, 4}, prediction{4.9F, 5.1F, 3.3F, 3.1F, 0};
  EXPECT_NEAR(depth_errors(prediction, depth).delta1, 2.0 / 5, 1e-9);
}

// A prediction behind the farthest known depth, or of the wrong sign, is at the farthest.
TEST(DepthMetrics, AlignedDepthIsAtMostTheFarthestKnown) {
  const std::vector<float> depth{1, 2, 4, kUnknown}, inverse{1, 0.5F, 0.25F, -3};
  EXPECT_NEAR(aligned_depth(inverse, depth)[3], 4, 1e-5);
  const std::vector<float> constant(4, 1);
  for (const float value : aligned_depth(constant, depth)) EXPECT_NEAR(value, 1 / ((1 + 0.5 + 0.25) / 3), 1e-5);
}

TEST(DepthMetrics, RefuseOtherSizesAndValues) {
  const std::vector<float> three(3, 1), infinite{1, INFINITY, 1};
  EXPECT_ERROR(error_of([&] { depth_errors(std::vector<float>(2, 1), three); }), "depth", "2");
  EXPECT_ERROR(error_of([&] { aligned_depth(infinite, three); }), "depth", "inf at pixel 1");
}

}  // namespace
}  // namespace vitrail::analysis
