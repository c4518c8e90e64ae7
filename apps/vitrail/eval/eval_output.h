// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of `vitrail eval`: a table for people, JSON, and a CSV file of predictions.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/vitrail/output/text_width.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/data/metrics/classification_report.h"
#include "vitrail/train/report/evaluation_report.h"

namespace vitrail::app {

// An image whose prediction is not its label.
struct WrongImage {
  std::string path;
  train::Misclassification prediction{};
};

struct EvaluationOutput {
  const data::ClassificationReport* report;
  const std::vector<std::string>* names;  // class names; may be empty
  std::vector<WrongImage> wrong{};
  double images_per_second = 0;
};

nlohmann::ordered_json json_of(const data::ClassMetrics& metrics);

// As JSON, or a line for each value.
void print_report(const nlohmann::ordered_json& report, bool json);

void print_evaluation_table(const EvaluationOutput& output);
void print_evaluation_json(const EvaluationOutput& output);

// Writes a row for each image: file,label,prediction,probability,label_probability,error.
class PredictionsFile {
 public:
  PredictionsFile(const std::string& path, const std::vector<std::string>& names);
  void add(const std::string& path, int64_t label, std::span<const float> logits);
  void add_failure(const std::string& path, int64_t label, const std::string& error);
  void finish();

 private:
  AtomicFile file_;
  const std::vector<std::string>& names_;
};

}  // namespace vitrail::app
