// SPDX-License-Identifier: Apache-2.0
#pragma once
// The results of `vitrail eval` for models that give each of several labels its own probability.
#include <optional>
#include <string>
#include <vector>

#include "apps/vitrail/input/image_stream.h"
#include "vitrail/base/atomic_file.h"
#include "vitrail/base/npy.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/metrics/multi_label_report.h"

namespace vitrail::app {

struct LabelEvaluationOptions {
  std::string dataset{}, logits{}, predictions{}, report{}, format{};  // as the options of eval
  std::string command_line{};
};

// Collects the results of the images, writes the files and prints a table or JSON.
class LabelEvaluation {
 public:
  // The arguments must outlive the object.  Throws Error if a file cannot be written.
  LabelEvaluation(const LabelEvaluationOptions& options, const data::Dataset& dataset, int64_t classes,
                  const std::vector<std::string>& names);

  void add(const Outcome& outcome);
  void finish(double seconds);
  int64_t failures() const { return failures_; }

 private:
  std::string name_of(int64_t label) const;
  std::string joined(const std::vector<int64_t>& labels) const;
  void add_prediction(const std::string& path, const std::vector<int64_t>& labels, std::span<const float> row);
  void fail(const Outcome& outcome, const std::string& error, const float* row = nullptr);
  void print_table(double images_per_second) const;
  void print_json_object(double images_per_second) const;
  void write_report() const;

  const LabelEvaluationOptions& options_;
  const data::Dataset& dataset_;
  const std::vector<std::string>& names_;
  data::MultiLabelReport report_;
  const std::vector<float> nan_row_;
  std::optional<NpyWriter> logits_;
  std::optional<AtomicFile> predictions_;
  int64_t failures_ = 0;
  bool any_logits_ = false;  // without any, old files stay
};

}  // namespace vitrail::app
