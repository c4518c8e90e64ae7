// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/confident_learning.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::analysis {
namespace {

// 60 samples of 4 classes.  Some are more probable in another class than in that of their label.
std::pair<Tensor, std::vector<int64_t>> drawn_samples() {
  uint64_t state = 12345;
  const auto draw = [&](uint64_t below) {
    state = (state * 1103515245 + 12345) % (uint64_t{1} << 31);
    return (state >> 16) % below;
  };
  Tensor probabilities = Tensor::empty({60, 4}, DType::f64);
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 60; ++i) {
    labels.push_back(static_cast<int64_t>(draw(4)));
    std::vector<uint64_t> weights;
    for (int c = 0; c < 4; ++c) weights.push_back(1 + draw(50));
    weights[static_cast<size_t>(labels.back())] += 60;
    if (draw(5) == 0) weights[draw(4)] += 200;
    const uint64_t sum = weights[0] + weights[1] + weights[2] + weights[3];
    for (int c = 0; c < 4; ++c)
      probabilities.data<double>()[i * 4 + c] =
          static_cast<double>(weights[static_cast<size_t>(c)]) / static_cast<double>(sum);
  }
  return {probabilities, labels};
}

// Values of cleanlab 2.9: find_label_issues(filter_by="confident_learning", ranked by self-confidence), and
// compute_confident_joint(calibrate=False).
TEST(ConfidentLearning, FindsTheErrorsThatCleanlabFinds) {
  const auto [probabilities, labels] = drawn_samples();
  const LabelQuality quality = label_quality(probabilities, labels);
  EXPECT_EQ(quality.errors, (std::vector<int64_t>{41, 29, 43, 46, 11, 44, 8, 47, 6, 0, 37, 40}));
  EXPECT_EQ(quality.confident_joint,
            (std::vector<std::vector<int64_t>>{{10, 1, 2, 2}, {1, 9, 0, 2}, {0, 0, 8, 1}, {0, 1, 2, 9}}));
}

TEST(ConfidentLearning, SelfConfidenceIsTheProbabilityOfTheLabel) {
  const LabelQuality quality = label_quality(Tensor::from<float>({2, 2}, {0.75f, 0.25f, 0.5f, 0.5f}), {1, 1});
  EXPECT_EQ(quality.self_confidence, (std::vector<double>{0.25, 0.5}));
  EXPECT_EQ(quality.predicted, (std::vector<int64_t>{0, 0}));
}

// The mean probability of class 1 over its samples is 0.35: the second sample reaches it, and so does the first one,
// whose most probable class is its label nevertheless.
TEST(ConfidentLearning, ASampleWhoseLabelHasTheLargestProbabilityIsNoError) {
  const LabelQuality quality =
      label_quality(Tensor::from<float>({4, 2}, {0.6f, 0.4f, 0.6f, 0.4f, 0.7f, 0.3f, 0.99f, 0.01f}), {0, 1, 1, 0});
  EXPECT_EQ(quality.confident_joint[0][1], 1);
  EXPECT_EQ(quality.errors, (std::vector<int64_t>{}));
}

TEST(ConfidentLearning, NoSampleBelongsToAClassWithoutLabels) {
  const LabelQuality quality = label_quality(Tensor::from<float>({2, 3}, {0.1f, 0.1f, 0.8f, 0.1f, 0.1f, 0.8f}), {0, 1});
  for (const auto& row : quality.confident_joint) EXPECT_EQ(row[2], 0);
}

TEST(ConfidentLearning, RefusesLabelsThatDoNotFit) {
  const Tensor probabilities = Tensor::from<float>({2, 2}, {0.5f, 0.5f, 0.5f, 0.5f});
  EXPECT_ERROR(testing::error_of([&] { label_quality(probabilities, {0}); }), "label quality", "[2, 2]");
  EXPECT_ERROR(testing::error_of([&] { label_quality(probabilities, {0, 2}); }), "label quality", "2");
}

}  // namespace
}  // namespace vitrail::analysis
