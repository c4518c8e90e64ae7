// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/metrics/multi_label_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/data/support.h"
#include "tests/support/errors.h"

namespace vitrail::data {
namespace {

using Json = nlohmann::json;

MultiLabelReport report_of(const Json& set) {
  MultiLabelReport report(set.at("classes"));
  for (size_t i = 0; i < set.at("labels").size(); ++i)
    report.add(set.at("logits").at(i).get<std::vector<float>>(), set.at("labels").at(i).get<std::vector<int64_t>>(),
               "image");
  return report;
}

TEST(MultiLabelReport, EqualsScikitLearn) {
  const Json sets = Json::parse(std::ifstream(testing::fixture("data/multi_label_report.json")));
  ASSERT_EQ(sets.size(), 3u);
  for (const Json& expected : sets) {
    const MultiLabelReport report = report_of(expected);
    EXPECT_EQ(report.images(), static_cast<int64_t>(expected.at("labels").size()));
    EXPECT_NEAR(report.macro_average_precision().value(), expected.at("map"), kRounding);
    EXPECT_NEAR(report.micro_average_precision().value(), expected.at("map_micro"), kRounding);
    EXPECT_NEAR(report.exact(), expected.at("exact"), kRounding);
    expect_average(report.macro_average(), expected.at("macro"));
    expect_average(report.micro_average(), expected.at("micro"));
    for (int64_t c = 0; c < report.class_count(); ++c) {
      const ClassMetrics metrics = report.of_class(c);
      EXPECT_NEAR(report.average_precision_of(c).value(), expected.at("average_precision").at(c), kRounding) << c;
      EXPECT_NEAR(metrics.precision, expected.at("precision").at(c), kRounding);
      EXPECT_NEAR(metrics.recall, expected.at("recall").at(c), kRounding);
      EXPECT_NEAR(metrics.f1, expected.at("f1").at(c), kRounding);
      EXPECT_EQ(metrics.support, expected.at("support").at(c));
    }
  }
}

TEST(MultiLabelReport, AClassWithoutImagesIsNotInTheMean) {
  MultiLabelReport report(3);
  report.add(std::vector<float>{2, -1, 1}, {0}, "a");
  report.add(std::vector<float>{-2, 1, 1}, {1}, "b");
  EXPECT_EQ(report.average_precision_of(2), std::nullopt);
  EXPECT_EQ(report.macro_average_precision(), 1);
  EXPECT_EQ(report.exact(), 0);
}

TEST(MultiLabelReport, WithoutAnyLabelThereIsNoAveragePrecision) {
  MultiLabelReport report(2);
  report.add(std::vector<float>{2, -1}, {}, "a");
  EXPECT_EQ(report.macro_average_precision(), std::nullopt);
  EXPECT_EQ(report.micro_average_precision(), std::nullopt);
}

TEST(MultiLabelReport, WithoutImagesEverythingIsZero) {
  const MultiLabelReport report(2);
  EXPECT_EQ(report.macro_average_precision(), std::nullopt);
  EXPECT_EQ(report.micro_average_precision(), std::nullopt);
  EXPECT_EQ(report.exact(), 0);
  EXPECT_EQ(report.macro_average().f1, 0);
}

TEST(MultiLabelReport, WrongImagesAreErrorsAndNotCounted) {
  MultiLabelReport report(2);
  EXPECT_ERROR(error_of([&] { report.add(std::vector<float>{0, NAN}, {0}, "a.png"); }), "a.png", "nan for class 1");
  EXPECT_ERROR(error_of([&] { report.add(std::vector<float>{0, 1}, {2}, "a.png"); }), "a.png", "2");
  EXPECT_ERROR(error_of([&] { report.add(std::vector<float>{0}, {0}, "a.png"); }), "a.png", "1");
  EXPECT_EQ(report.images(), 0);
}

// The definition: the mean over images with the label of the precision at their score.
double slow_average_precision(const std::vector<float>& scores, const std::vector<bool>& relevant) {
  double sum = 0, positives = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!relevant[i]) continue;
    double found = 0, above = 0;
    for (size_t j = 0; j < scores.size(); ++j) {
      above += scores[j] >= scores[i];
      found += scores[j] >= scores[i] && relevant[j];
    }
    sum += found / above;
    ++positives;
  }
  return sum / positives;
}

TEST(AveragePrecision, EqualsItsDefinitionWithEqualScores) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(1 + random() % 30);
    std::vector<bool> relevant(scores.size());
    for (size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(random() % 6), relevant[i] = random() % 2;
    const std::optional<double> average = average_precision(scores, relevant);
    const bool any = std::find(relevant.begin(), relevant.end(), true) != relevant.end();
    ASSERT_EQ(average.has_value(), any);
    if (any) {
      ASSERT_NEAR(*average, slow_average_precision(scores, relevant), kRounding) << round;
    }
  }
  EXPECT_EQ(average_precision({}, {}), std::nullopt);
}

TEST(MultiLabelReport, AProbabilityOfOneHalfIsNotPredicted) {
  MultiLabelReport report(2);
  report.add(std::vector<float>{0, 1e-30F}, {1}, "a");
  EXPECT_EQ(report.exact(), 1);
  EXPECT_EQ(report.micro_average().precision, 1);
  report.add(std::vector<float>{0, -0.0F}, {0, 0}, "the same label twice counts once");
  EXPECT_EQ(report.of_class(0).support, 1);
  EXPECT_EQ(report.of_class(0).recall, 0);
  EXPECT_EQ(report.exact(), 0.5);
  EXPECT_EQ(report.micro_average().support, 2);
}

TEST(Sigmoid, SaturatesWithoutOverflow) {
  EXPECT_EQ(sigmoid(0), 0.5F);
  EXPECT_EQ(sigmoid(1000), 1);
  EXPECT_EQ(sigmoid(-1000), 0);
  EXPECT_EQ(sigmoid(-INFINITY), 0);
  EXPECT_NEAR(sigmoid(1) + sigmoid(-1), 1, 1e-7);
}

}  // namespace
}  // namespace vitrail::data
