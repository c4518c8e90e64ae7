// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a classifier on labelled images.
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "vitrail/data/loader/loader.h"
#include "vitrail/data/metrics/multi_label_report.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/report/evaluation_report.h"

namespace vitrail::train {

struct ClassEvaluation {
  int64_t images = 0, skipped = 0;                 // skipped: unreadable images
  double loss = 0;                                 // mean cross-entropy, or binary cross-entropy of several labels
  double top1 = 0, top5 = 0;                       // accuracies, or of several labels mean average precision and F1
  std::vector<std::vector<int64_t>> confusion;     // [label][prediction]: numbers of images; empty for several labels
  std::vector<Misclassification> worst;            // those with the lowest label_probability, in ascending order
  std::optional<data::MultiLabelReport> labels{};  // for images with several labels
};

constexpr size_t kMaxMisclassifications = 24;
void keep_worst(std::vector<Misclassification>& worst);  // sorts and truncates to kMaxMisclassifications

// Evaluates the model on one epoch of the loader, which gives images in order and without augmentation
// (data::evaluation_options).  Leaves the model in eval mode.  Calls `progress(done, total)` after each batch.
ClassEvaluation evaluate(models::VisionTransformer& model, data::Loader& loader, int64_t classes,
                         const std::function<void(int64_t, int64_t)>& progress = {});

}  // namespace vitrail::train
