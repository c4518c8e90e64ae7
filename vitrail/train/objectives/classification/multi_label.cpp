// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/multi_label_internal.h"

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
  require(recipe.model.head == "drawn", "model.head: expected \"drawn\", got \"" + recipe.model.head + "\"");
  require(!recipe.mix.any(), "augment: expected neither mixup nor cutmix, got one");
  require(!recipe.data.balance, "data.balance: expected false, got true");
  require(processes == 1, str("expected one process, got ", processes));
  if (!problems.empty()) throw Error(recipe.data.train + ": its images have several labels:" + problems);
}

Metrics classification_metrics(bool multi_label, size_t classes) {
  if (multi_label) {
    return {.each = {{"map", "mean average precision", "mean average precision {}", ScoreUnit::percent,
                      "Mean average precision"},
                     {"f1", "F1", "F1 {}", ScoreUnit::percent}},
            .line = "mAP {0}  F1 {1} of {n}",
            .average_line = "{0}"};
  }
  return {.each = {{"top1", "top-1", "top-1 {}", ScoreUnit::share, "Top-1 accuracy"},
                   {"top5", "top-5", "top-5 {}", ScoreUnit::share}},
          .line = "top-1 {0}",
          .average_line = "{0}",
          .in_training = true,
          .in_report = classes > 5 ? size_t{2} : size_t{1}};
}

}  // namespace vitrail::train
