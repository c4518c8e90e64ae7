// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the report of a classifier has besides that of any run.
#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {

// Adds examples, metrics by class, the confusion and the worst mistakes.  `evaluation`: of the best weights on
// `subset`.
void add_classes(const RunData& data, const ClassEvaluation& evaluation, const Subset& subset,
                 const std::vector<Gallery>& galleries, Report& report);

// How a model was trained, for its card.
struct TrainingTexts {
  std::string origin;     // "Fine-tuned from `init`"
  std::string training;   // "12 epochs of `photos`"
  std::string results{};  // lines of the results
};
TrainingTexts training_texts(const Recipe& recipe, int64_t epochs);

// model/README.md
std::string classifier_card(const ReportInput& input, const std::vector<std::string>& classes,
                            const TrainingTexts& texts);

}  // namespace vitrail::train
