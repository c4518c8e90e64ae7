// SPDX-License-Identifier: Apache-2.0
#pragma once
// The folder of a run: its lock and the files in it.
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"
#include "vitrail/train/report/report_internal.h"
#include "vitrail/train/run/metrics_log_internal.h"

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

// Does nothing for a folder that cannot be listed.
void for_each_entry(const std::filesystem::path& folder,
                    const std::function<void(const std::filesystem::path& entry)>& body);

void write_text(const std::filesystem::path& path, const std::string& text);  // atomically

// Writes weights under their native names to a safetensors file.
void write_weights(const std::filesystem::path& path, const std::vector<nn::NamedTensor>& weights);

// Writes config.json and model.safetensors, the layout of the Hugging Face hub, to `folder`.
void write_model(const std::filesystem::path& folder, const std::string& config_json,
                 const std::vector<nn::NamedTensor>& weights);

// The contents of report.html, summary.json and model/README.md.
struct ReportInput {
  const Recipe* recipe = nullptr;
  const Counters* counters = nullptr;
  const Metrics* metrics = nullptr;
  std::string subject{};  // what was trained
  struct {
    int64_t training = 0, validation = 0, test = 0;  // 0: no such images
  } images{};
  int64_t parameters = 0;
  bool finished = false;
  int processes = 1;
  std::vector<std::pair<std::string, std::string>> environment{};
  std::function<void(Report&)> add_section{};
  std::function<std::string(const ReportInput&)> model_card{};
};
void write_report(const std::filesystem::path& folder, const ReportInput& input);

// "top-1 on the test images, 95 % interval …" → "88.10 %", and of the validation images.
std::vector<std::pair<std::string, std::string>> score_facts(const ReportInput& input);

// ", 95 % interval 86.3 to 98.3 %, 60 images"
std::string interval_text(double share, int64_t images);

// The environment that the options give, and this machine's processor.
std::vector<std::pair<std::string, std::string>> environment_of(const TrainerOptions& options, int threads);

// The entry of the environment with the result of cross-validation.
constexpr const char* kCrossValidation = "cross-validation";

}  // namespace vitrail::train
