// SPDX-License-Identifier: Apache-2.0
#pragma once
// Training on images with several labels: what a recipe must say, and the names of the metrics.
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// Throws one Error that lists the settings that do not go with images of several labels.
void check_multi_label(const Recipe& recipe, int processes);

// The two metrics of an evaluation, which Evaluation, EpochResult and Counters have in top1 and top5: accuracies, or
// for images with several labels the mean average precision over the classes and the F1 of all decisions at 0.5.
struct MetricNames {
  const char *first, *second;              // in files: "top1"
  const char *first_title, *second_title;  // in reports: "top-1"
};
MetricNames metric_names(bool multi_label);
// Those of segmentation: mean IoU for one click (the best of the masks) and for a box.
MetricNames segmentation_metric_names();

// "88.10 % of 60 images (95 % interval 77.8 to 94.0 %)", or "0.8810 on 60 images" for a mean average precision, whose
// interval does not follow from the number of images.
std::string first_metric_text(bool multi_label, double value, int64_t images);

}  // namespace vitrail::train
