// SPDX-License-Identifier: Apache-2.0
#include "vitrail/analysis/label_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/ops/resize.h"

namespace vitrail::analysis {
namespace {

using testing::error_of;

// scikit-learn: jaccard_score(y, p, average=None) = [0.5, 0.4, 0.25], accuracy_score = 0.5556,
// recall_score(average=None) = [0.6667, 0.5, 0.5], without the pixels of the label 255.
TEST(LabelMapMetrics, EqualThoseOfScikitLearn) {
  LabelMapMetrics metrics(5);
  const std::vector<int32_t> labels{0, 0, 0, 1, 1, 1, 1, 2, 2, 255, 255};
  const std::vector<int32_t> predicted{0, 0, 2, 1, 1, 0, 2, 2, 1, 0, 4};
  metrics.add(labels, predicted, "map");
  EXPECT_EQ(metrics.pixels(), 9);
  EXPECT_DOUBLE_EQ(metrics.pixel_accuracy(), 5.0 / 9);
  EXPECT_DOUBLE_EQ(metrics.iou(0), 2.0 / 4);
  EXPECT_DOUBLE_EQ(metrics.iou(1), 2.0 / 5);
  EXPECT_DOUBLE_EQ(metrics.iou(2), 1.0 / 4);
  EXPECT_TRUE(std::isnan(metrics.iou(3)));
  EXPECT_TRUE(std::isnan(metrics.iou(4))) << "an ignored pixel does not count for its prediction either";
  EXPECT_DOUBLE_EQ(metrics.mean_iou(), (0.5 + 0.4 + 0.25) / 3);
  EXPECT_DOUBLE_EQ(metrics.mean_accuracy(), (2.0 / 3 + 0.5 + 0.5) / 3);
}

TEST(LabelMapMetrics, AddUpOverImages) {
  LabelMapMetrics once(2), twice(2);
  const std::vector<int32_t> labels{0, 1, 1, 0}, predicted{0, 1, 0, 0};
  once.add(labels, predicted, "map");
  twice.add(std::span(labels).first(1), std::span(predicted).first(1), "map");
  twice.add(std::span(labels).subspan(1), std::span(predicted).subspan(1), "map");
  EXPECT_EQ(once.mean_iou(), twice.mean_iou());
  EXPECT_EQ(twice.pixels(), 4);
}

TEST(LabelMapMetrics, APixelWithoutAPredictionIsWrong) {
  LabelMapMetrics metrics(2);
  metrics.add(std::vector<int32_t>{0, 1}, std::vector<int32_t>{0, -1}, "map");
  EXPECT_EQ(metrics.pixel_accuracy(), 0.5);
  EXPECT_EQ(metrics.iou(1), 0);
}

TEST(LabelMapMetrics, TellsWhichLabelsItTakes) {
  LabelMapMetrics metrics(2);
  EXPECT_TRUE(std::isnan(metrics.pixel_accuracy()));
  EXPECT_TRUE(std::isnan(metrics.mean_iou()));
  const std::vector<int32_t> two{0, 1};
  EXPECT_ERROR(error_of([&] { metrics.add(std::vector<int32_t>{0, 7}, two, "map.png"); }), "map.png", "7");
  EXPECT_ERROR(error_of([&] { metrics.add(std::vector<int32_t>{0}, two, "map.png"); }), "map.png", "1");
  EXPECT_NO_THROW(metrics.add(std::vector<int32_t>{0, 7}, two, "map.png", 7));
  EXPECT_EQ(metrics.pixels(), 1);
}

TEST(ArgmaxAtSize, IsThatOfTheInterpolatedScores) {
  constexpr int64_t kRows = 3, kColumns = 5, kClasses = 7, kHeight = 11, kWidth = 13;
  const Tensor scores = Tensor::empty({kRows, kColumns, kClasses});
  for (int64_t i = 0; i < scores.numel(); ++i)
    scores.data<float>()[i] = std::sin(static_cast<float>(i * i % 97) * 0.7F);
  const Tensor large = ops::resize_map(scores.unsqueeze(0), kHeight, kWidth).squeeze(0);
  const std::vector<int32_t> got = argmax_at_size(scores, kHeight, kWidth);
  std::vector<bool> seen(kClasses);
  for (size_t i = 0; i < got.size(); ++i) {
    const float* const pixel = large.data<float>() + static_cast<int64_t>(i) * kClasses;
    EXPECT_EQ(got[i], std::max_element(pixel, pixel + kClasses) - pixel) << i;
    seen[static_cast<size_t>(got[i])] = true;
  }
  EXPECT_GT(std::ranges::count(seen, true), 4);
  const std::vector<int32_t> same = argmax_at_size(scores, kRows, kColumns);
  for (size_t i = 0; i < same.size(); ++i) {
    const float* const pixel = scores.data<float>() + static_cast<int64_t>(i) * kClasses;
    EXPECT_EQ(same[i], std::max_element(pixel, pixel + kClasses) - pixel) << i;
  }
}

Tensor noise_scores(int64_t rows, int64_t columns, int64_t classes, int seed) {
  const Tensor scores = Tensor::empty({rows, columns, classes});
  for (int64_t i = 0; i < scores.numel(); ++i)
    scores.data<float>()[i] = std::sin(static_cast<float>((i + seed) * i % 97) * 0.7F);
  return scores;
}

// Windows of a map of 9×11 cells share two columns.  The map is seen at another size.
TEST(ArgmaxAtSize, WindowsAreAveragedWhereTheyOverlap) {
  constexpr int64_t kClasses = 5, kHeight = 14, kWidth = 23;
  const std::vector<ScoreWindow> windows{{noise_scores(3, 2, kClasses, 1), 0, 0, 9, 6},
                                         {noise_scores(4, 3, kClasses, 2), 0, 4, 9, 7}};
  const Tensor map = Tensor::zeros({9, 11, kClasses});
  for (const ScoreWindow& window : windows) {
    const Tensor large = ops::resize_map(window.scores.unsqueeze(0), window.height, window.width).squeeze(0);
    for (int64_t y = 0; y < window.height; ++y) {
      for (int64_t x = 0; x < window.width; ++x) {
        const bool both = window.left + x >= 4 && window.left + x < 6;
        for (int64_t c = 0; c < kClasses; ++c)
          map.data<float>()[(y * 11 + window.left + x) * kClasses + c] +=
              large.data<float>()[(y * window.width + x) * kClasses + c] / (both ? 2.0F : 1.0F);
      }
    }
  }
  const Tensor large = ops::resize_map(map.unsqueeze(0), kHeight, kWidth).squeeze(0);
  const std::vector<int32_t> got = argmax_at_size(windows, {9, 11}, kHeight, kWidth);
  for (size_t i = 0; i < got.size(); ++i) {
    const float* const pixel = large.data<float>() + static_cast<int64_t>(i) * kClasses;
    EXPECT_NEAR(pixel[got[i]], *std::max_element(pixel, pixel + kClasses), 1e-5) << i;
  }
}

TEST(ArgmaxAtSize, TakesTheFirstOfEqualScores) {
  EXPECT_EQ(argmax_at_size(Tensor::zeros({1, 1, 3}), 2, 2), (std::vector<int32_t>{0, 0, 0, 0}));
  EXPECT_ERROR(error_of([] { argmax_at_size(Tensor::zeros({2, 3}), 1, 1); }), "argmax_at_size", "[2, 3] to 1×1");
}

}  // namespace
}  // namespace vitrail::analysis
