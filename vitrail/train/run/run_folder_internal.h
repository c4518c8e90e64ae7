// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run: its lock and the files in it.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/analysis/strength_search.h"
#include "vitrail/models/model_config.h"
#include "vitrail/nn/module.h"
#include "vitrail/train/objectives/evaluation_internal.h"
#include "vitrail/train/report/report_images_internal.h"
#include "vitrail/train/run/metrics_log_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// Creates and locks the folder of a run, so that only one process writes to it.
class RunFolder {
 public:
  // Throws Error if another process has locked the folder, if it cannot be created, and if there is a symbolic link
  // where the run writes: nothing outside of the folder is changed.
  explicit RunFolder(const std::filesystem::path& path);
  ~RunFolder();  // without keep(), removes what the constructor has created: a refused run leaves nothing behind
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  void keep() { created_.clear(); }  // call it before the first file is written
  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path checkpoint(const std::string& name) const;  // path of a checkpoint, such as "last"
  bool holds_run() const;                                           // whether there is a last or previous checkpoint
  void remove_temporary_files() const;                              // left by a process that was killed

 private:
  void create_and_lock();
  void remove_created();

  std::filesystem::path path_;
  std::vector<std::filesystem::path> created_;  // folders, the innermost first
  int lock_ = -1;
};

void write_text(const std::filesystem::path& path, const std::string& text);  // atomically

// Writes weights under their native names to a safetensors file.
void write_weights(const std::filesystem::path& path, const std::vector<nn::NamedTensor>& weights);

// Writes config.json and model.safetensors, the layout of the Hugging Face hub, to `folder`.
void write_model(const std::filesystem::path& folder, const models::ModelConfig& config,
                 const std::vector<nn::NamedTensor>& weights);

// The contents of report.html and summary.json.
struct ReportInput {
  const Recipe* recipe;
  const models::ModelConfig* config;
  const RunData* data;
  const Counters* counters;
  const Evaluation* evaluation;  // evaluation of the best weights on `subset`
  const Subset* subset;          // the test images, or the validation images
  int64_t parameters;
  bool finished;
  int processes;
  const ReportImages* images;
  std::vector<std::pair<std::string, std::string>> environment;
  const analysis::StrengthSearch* search = nullptr;  // set for a probe
};
void write_report(const std::filesystem::path& folder, const ReportInput& input);  // model/README.md too

// The environment that the options give, and this machine's processor.
std::vector<std::pair<std::string, std::string>> environment_of(const TrainerOptions& options, int threads);

// The entry of the environment with the result of cross-validation.
constexpr const char* kCrossValidation = "cross-validation";

std::string model_card(const ReportInput& input);

}  // namespace vitrail::train
