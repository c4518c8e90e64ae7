// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/classification_report.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/data/support.h"

namespace vitrail::data {
namespace {

using Json = nlohmann::json;

constexpr double kFloatRounding = 1.2e-7;  // the mean of float probabilities

TEST(ClassificationReport, EqualsScikitLearn) {
  const Json cases = Json::parse(std::ifstream(testing::fixture("data/classification_report.json")));
  ASSERT_EQ(cases.size(), 3u);
  for (const Json& expected : cases) {
    const int64_t classes = expected.at("classes");
    ClassificationReport report(classes);
    for (size_t i = 0; i < expected.at("labels").size(); ++i) {
      report.add(expected.at("logits").at(i).get<std::vector<float>>(), expected.at("labels").at(i), "image");
    }
    EXPECT_EQ(report.images(), static_cast<int64_t>(expected.at("labels").size()));
    EXPECT_NEAR(report.top1(), expected.at("top1"), kRounding);
    EXPECT_NEAR(report.top5(), expected.at("top5"), kRounding);
    EXPECT_NEAR(report.calibration_error(), expected.at("calibration_error"), kFloatRounding);
    expect_average(report.macro_average(), expected.at("macro"));
    expect_average(report.weighted_average(), expected.at("weighted"));
    for (int64_t c = 0; c < classes; ++c) {
      const ClassMetrics metrics = report.of_class(c);
      EXPECT_NEAR(metrics.precision, expected.at("precision").at(c), kRounding);
      EXPECT_NEAR(metrics.recall, expected.at("recall").at(c), kRounding);
      EXPECT_NEAR(metrics.f1, expected.at("f1").at(c), kRounding);
      EXPECT_EQ(metrics.support, expected.at("support").at(c));
      for (int64_t p = 0; p < classes; ++p) {
        const auto found = report.confusion().find({c, p});
        EXPECT_EQ(found == report.confusion().end() ? 0 : found->second, expected.at("confusion").at(c).at(p));
      }
    }
  }
}

TEST(ClassificationReport, InvalidImagesAreErrorsAndNotCounted) {
  ClassificationReport report(2);
  EXPECT_THROW(report.add(std::vector<float>{1, NAN}, 0, "x"), Error);
  EXPECT_THROW(report.add(std::vector<float>{1, 2}, 2, "x"), Error);
  EXPECT_EQ(report.images(), 0);
  EXPECT_TRUE(report.classes().empty());
  EXPECT_EQ(report.macro_average().f1, 0);
  EXPECT_EQ(report.calibration_error(), 0);
}

TEST(ClassificationReport, CertainAndRightIsCalibrated) {
  ClassificationReport report(2);
  const Prediction prediction = report.add(std::vector<float>{0, 100}, 1, "x");
  EXPECT_EQ(prediction.index, 1);
  EXPECT_EQ(prediction.probability, 1);
  EXPECT_EQ(report.calibration_error(), 0);
  report.add(std::vector<float>{0, 100}, 0, "x");
  EXPECT_EQ(report.calibration_error(), 0.5);
}

// A probability of 0.9 is in the last bin but one, so that its gap does not cancel that of a certain mistake.
TEST(ClassificationReport, GapsOfTwoBinsDoNotCancel) {
  ClassificationReport report(2);
  report.add(std::vector<float>{0, 100}, 0, "certain and wrong");
  const double probability = report.add(std::vector<float>{0, std::log(9.0F)}, 1, "right").probability;
  EXPECT_NEAR(report.calibration_error(), (1 + (1 - probability)) / 2, kFloatRounding);
}

// scikit-learn does the same: a class that is only predicted counts in the mean over classes, one that never occurs
// does not.
TEST(ClassificationReport, AClassThatIsOnlyPredictedCountsInTheMean) {
  ClassificationReport report(4);
  report.add(std::vector<float>{9, 0, 0, 0}, 0, "right");
  report.add(std::vector<float>{0, 0, 9, 0}, 0, "wrong");
  EXPECT_EQ(report.classes(), (std::vector<int64_t>{0, 2}));
  EXPECT_EQ(report.macro_average().precision, 0.5);
  EXPECT_EQ(report.macro_average().recall, 0.25);
  EXPECT_EQ(report.macro_average().support, 2);
  EXPECT_EQ(report.weighted_average().precision, 1);
  EXPECT_EQ(report.weighted_average().recall, 0.5);
}

}  // namespace
}  // namespace vitrail::data
