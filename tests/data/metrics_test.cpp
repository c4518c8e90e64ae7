// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "vitrail/base/error.h"

namespace vitrail::data {
namespace {

TEST(Softmax, EqualsItsDefinitionWithoutOverflow) {
  const std::vector<float> probabilities = softmax(std::vector<float>{1000, 1001, 999}, "x");
  const double sum = 1 + std::exp(1.0) + std::exp(-1.0);
  // One rounding of a double to float: half an ulp below 1.
  EXPECT_NEAR(probabilities[0], 1 / sum, 6e-8);
  EXPECT_NEAR(probabilities[1], std::exp(1.0) / sum, 6e-8);
  EXPECT_NEAR(probabilities[2], std::exp(-1.0) / sum, 6e-8);
}

TEST(TopK, OrdersByLogitAndTiesByLowerIndex) {
  const std::vector<float> logits{3, 7, 3, 9, 7, -INFINITY};
  const std::vector<Prediction> best = top_k(logits, 4, "x");
  ASSERT_EQ(best.size(), 4u);
  EXPECT_EQ(best[0].index, 3);
  EXPECT_EQ(best[1].index, 1);
  EXPECT_EQ(best[2].index, 4);
  EXPECT_EQ(best[3].index, 0);
  EXPECT_EQ(best[1].probability, best[2].probability);
  EXPECT_EQ(top_k(logits, 5000000000, "x").size(), 6u);
  EXPECT_EQ(top_k(logits, 6, "x")[5].probability, 0);
}

TEST(TopK, NonFiniteLogitsAreErrorsThatNameTheClass) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  try {
    top_k(std::vector<float>{0, nan}, 1, "cat.png");
    FAIL() << "NaN was ranked";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cat.png: expected finite logits, got nan for class 1");
  }
  EXPECT_THROW(top_k(std::vector<float>{0, INFINITY}, 1, "x"), Error);
  EXPECT_THROW(top_k(std::vector<float>{-INFINITY, -INFINITY}, 1, "x"), Error);
  EXPECT_THROW(top_k({}, 1, "x"), Error);
  EXPECT_THROW(top_k(std::vector<float>{0, 1}, 0, "x"), Error);
}

TEST(Accuracy, CountsTop1AndTop5) {
  const std::vector<float> logits{10, 9, 8, 7, 6, 5};
  Accuracy accuracy;
  EXPECT_EQ(accuracy.top1(), 0);
  accuracy.add(logits, 0, "x");
  accuracy.add(logits, 4, "x");
  accuracy.add(logits, 5, "x");
  accuracy.add(logits, 1, "x");
  EXPECT_EQ(accuracy.images(), 4);
  EXPECT_EQ(accuracy.top1(), 0.25);
  EXPECT_EQ(accuracy.top5(), 0.75);
}

// Equal logits give chance accuracy, not accuracy 1: the lowest index wins a tie.
TEST(Accuracy, TiesGoToTheLowerIndex) {
  const std::vector<float> equal(10, 1.0f);
  Accuracy accuracy;
  for (int label = 0; label < 10; ++label) accuracy.add(equal, label, "x");
  EXPECT_EQ(accuracy.top1(), 0.1);
  EXPECT_EQ(accuracy.top5(), 0.5);
}

TEST(Accuracy, WithFewerThanFiveClassesTop5IsOne) {
  Accuracy accuracy;
  accuracy.add(std::vector<float>{1, 2}, 0, "x");
  EXPECT_EQ(accuracy.top1(), 0);
  EXPECT_EQ(accuracy.top5(), 1);
}

TEST(Accuracy, AClassOfProbabilityZeroIsNoPrediction) {
  Accuracy accuracy;
  accuracy.add(std::vector<float>{-INFINITY, 2}, 0, "x");
  EXPECT_EQ(accuracy.images(), 1);
  EXPECT_EQ(accuracy.top5(), 0);
}

TEST(Accuracy, InvalidLogitsAndLabelsAreErrorsAndNotCounted) {
  Accuracy accuracy;
  EXPECT_THROW(accuracy.add(std::vector<float>{1, NAN}, 0, "x"), Error);
  EXPECT_THROW(accuracy.add(std::vector<float>{1, 2}, 2, "x"), Error);
  EXPECT_THROW(accuracy.add(std::vector<float>{1, 2}, -1, "x"), Error);
  EXPECT_EQ(accuracy.images(), 0);
}

// Values of statsmodels.stats.proportion.proportion_confint(method="wilson").
TEST(WilsonInterval, EqualsTheReference) {
  const Interval high = wilson_interval(57 / 60.0, 60), half = wilson_interval(0.5, 10), all = wilson_interval(1, 18);
  EXPECT_NEAR(high.low, 0.862995, 1e-6);
  EXPECT_NEAR(high.high, 0.982850, 1e-6);
  EXPECT_NEAR(half.low, 0.236593, 1e-6);
  EXPECT_NEAR(half.high, 0.763407, 1e-6);
  EXPECT_NEAR(all.low, 0.824121, 1e-6);
  EXPECT_EQ(all.high, 1);
  EXPECT_EQ(wilson_interval(0, 18).low, 0);
}

TEST(WilsonInterval, OfNoImagesIsEverything) {
  EXPECT_EQ(wilson_interval(0, 0).low, 0);
  EXPECT_EQ(wilson_interval(0, 0).high, 1);
}

TEST(WilsonInterval, IsPartOfAnAccuracysText) {
  EXPECT_TRUE(accuracy_text(0, 1).starts_with("0.00 % of 1 image ("));
  EXPECT_EQ(accuracy_text(0.95, 60), "95.00 % of 60 images (95 % interval 86.3 to 98.3 %)");
}

}  // namespace
}  // namespace vitrail::data
