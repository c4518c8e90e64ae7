// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run: its lock, its files, the model and the report in it.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/nn/module.h"
#include "vitrail/train/metrics_log_internal.h"
#include "vitrail/train/run_data.h"

namespace vitrail::train {

// Held while a run writes to its folder, so that no second one does.
class RunFolder {
 public:
  // Makes the folder where it is missing.  Throws Error when another process holds it or it cannot be made.
  explicit RunFolder(const std::filesystem::path& path);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoint(const std::string& name) const;  // "last"
  bool holds_run() const;                                           // there is a last or a previous checkpoint
  void remove_leftovers() const;                                    // temporary files of a process that was killed

 private:
  std::filesystem::path path_;
  int lock_ = -1;
};

void write_text(const std::filesystem::path& path, const std::string& text);  // whole or not at all

// Plain weights under their native names, beside the checkpoints.
void write_weights(const std::filesystem::path& path, const std::vector<nn::NamedTensor>& weights);

// model/: config.json and model.safetensors.
void write_model(const std::filesystem::path& folder, const models::ModelConfig& config,
                 const std::vector<nn::NamedTensor>& weights);

// report.html and summary.json of a run that is over, or of one under way.
struct ReportInput {
  const Recipe* recipe;
  const models::ModelConfig* config;
  const RunData* data;
  const Counters* counters;
  const Evaluation* evaluation;  // of the best weights, on the test images or else the held-out ones
  const Part* part;              // what it was evaluated on
  int64_t parameters;
  bool finished;
  int processes;
};
void write_report(const std::filesystem::path& folder, const ReportInput& input);

}  // namespace vitrail::train
