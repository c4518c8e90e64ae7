// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/scores.h"

#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/segmentation/segmentation_internal.h"

namespace vitrail::train {
namespace {

Evaluation evaluation_of(const Metrics& metrics) { return {0.5, 60, scores_of(metrics.each, {0.95, 0.88104}, 60)}; }

TEST(Scores, HaveTheirNamesInFilesAndReports) {
  std::vector<std::string> names;
  for (const Metrics& metrics : {classification_metrics(false), classification_metrics(true), segmentation_metrics()}) {
    for (const Metric& metric : metrics.each) names.push_back(metric.name + ": " + metric.title);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"top1: top-1", "top5: top-5", "map: mean average precision", "f1: F1",
                                             "click_iou: mean IoU for one click", "box_iou: mean IoU for a box"}));
}

TEST(Scores, OfSharesHaveTheirInterval) {
  const Metrics metrics = classification_metrics(false);
  const Evaluation evaluation = evaluation_of(metrics);
  EXPECT_EQ(line_of(metrics.line, evaluation), "top-1 95.00 % (86.3 to 98.3 of 60)");
  EXPECT_EQ(text_of(evaluation.scores[0]), "top-1 95.00 % of 60 images (95 % interval 86.3 to 98.3 %)");
}

TEST(Scores, ThatAreNoSharesHaveFourDigits) {
  const Metrics labels = classification_metrics(true), masks = segmentation_metrics();
  EXPECT_EQ(line_of(labels.line, evaluation_of(labels)), "mAP 0.9500  F1 0.8810 of 60");
  EXPECT_EQ(line_of(masks.line, evaluation_of(masks)), "mean IoU 0.9500 for a click, 0.8810 for a box, 60 images");
  EXPECT_EQ(line_of(masks.average_line, evaluation_of(masks)), "0.9500, 0.8810");
  EXPECT_EQ(text_of(evaluation_of(labels).scores[0]), "mean average precision 0.9500 on 60 images");
  EXPECT_EQ(text_of(evaluation_of(masks).scores[1]), "mean IoU 0.8810 for a box on 60 images");
}

TEST(Scores, AreAsManyAsThereAreValues) {
  EXPECT_EQ(scores_of(kAccuracies, {0.5}, 3).size(), 1u);
  EXPECT_EQ(scores_of(kAccuracies, {0.5, 0.25, 0.125}, 3).back().value, 0.25);
}

}  // namespace
}  // namespace vitrail::train
