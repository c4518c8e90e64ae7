// SPDX-License-Identifier: Apache-2.0
#pragma once
// The HTML page of an evaluation: accuracy, metrics by class, confusion and the worst mistakes.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/metrics/classification_report.h"
#include "vitrail/data/metrics/multi_label_report.h"

namespace vitrail::train {

// An image whose predicted class is not its label.
struct Misclassification {
  int64_t sample = 0;                                        // index in the dataset
  int64_t label = 0, prediction = 0;                         // classes
  double prediction_probability = 0, label_probability = 0;  // softmax
};

struct EvaluationReport {
  std::string title{}, subtitle{};
  const data::ClassificationReport* metrics = nullptr;  // null for images with several labels
  const data::MultiLabelReport* label_metrics = nullptr;
  const data::Dataset* dataset = nullptr;
  std::vector<std::string> class_names{};  // in index order; empty: the indices
  std::vector<Misclassification> wrong{};  // in any order; the page shows those whose label is least probable
  std::vector<std::pair<std::string, std::string>> environment{};  // "command" → "vitrail eval photos"
};

// Writes one self-contained file without scripts, atomically.  Throws Error if it cannot be written, or an image of it
// cannot be read again.
void write_evaluation_report(const std::filesystem::path& file, const EvaluationReport& evaluation);

}  // namespace vitrail::train
