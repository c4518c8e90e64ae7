// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "vitrail/base/error.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/objectives/multi_label_internal.h"

namespace vitrail::train {

void check_multi_label(const Recipe& recipe, int processes) {
  std::string problems;
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems += "\n  " + problem;
  };
  const LossRecipe& loss = recipe.loss;
  require(recipe.objective != "probe", "objective: expected \"classify\", got \"probe\"");
  require(loss.name == "bce", "loss.name: expected \"bce\" (--set loss.name=bce), got \"" + loss.name + "\"");
  require(loss.label_smoothing == 0, str("loss.label_smoothing: expected 0, got ", loss.label_smoothing));
  require(!loss.bce_threshold, "loss.bce_threshold: expected null, got a number");
  require(!loss.distillation, "loss.distillation: expected null, got a teacher");
  require(!recipe.mix.any(), "augment: expected neither mixup nor cutmix, got one");
  require(!recipe.data.balance, "data.balance: expected false, got true");
  require(processes == 1, str("expected one process, got ", processes));
  if (!problems.empty()) throw Error(recipe.data.train + ": its images have several labels:" + problems);
}

MetricNames metric_names(bool multi_label) {
  if (multi_label) return {"map", "f1", "mean average precision", "F1"};
  return {"top1", "top5", "top-1", "top-5"};
}

MetricNames segmentation_metric_names() {
  return {"click_iou", "box_iou", "mean IoU for one click", "mean IoU for a box"};
}

std::string first_metric_text(bool multi_label, double value, int64_t images) {
  if (!multi_label) return data::accuracy_text(value, images);
  char text[64];
  std::snprintf(text, sizeof text, "%.4f on %lld images", value, static_cast<long long>(images));
  return text;
}

}  // namespace vitrail::train
