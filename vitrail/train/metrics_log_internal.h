// SPDX-License-Identifier: Apache-2.0
#pragma once
// Metrics of a run: running sums, results so far, and the files that they are written to.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/evaluation_internal.h"
#include "vitrail/train/event_file_internal.h"
#include "vitrail/train/metrics_file_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// Running sums over training steps.
struct RunningSums {
  double loss = 0;  // sum over images
  int64_t correct = 0, images = 0;
  double gradient_norm = 0;  // sum over steps
  int64_t steps = 0;
  double mean_loss() const { return images ? loss / static_cast<double>(images) : 0; }
  double accuracy() const { return images ? static_cast<double>(correct) / static_cast<double>(images) : 0; }
};

// Running sums and results, saved with each checkpoint so that a resumed run continues them.
struct Counters {
  RunningSums epoch, interval;  // since the start of the epoch, and since the last row of metrics.csv
  double best_top1 = -1;        // best validation accuracy; −1: none yet
  int64_t best_epoch = 0;
  bool best_is_average = false;  // whether the best weights are EMA weights
  std::vector<EpochResult> history;
  int64_t skipped_images = 0, skipped_steps = 0, skipped_in_a_row = 0;
  double seconds = 0;  // training time
  CommunicationTimes communication;
  uint64_t metrics_bytes = 0, event_bytes = 0;  // lengths of the files at the checkpoint
  std::string event_name;                       // file name of the TensorBoard event file
  bool tested = false;
  double test_loss = 0, test_top1 = 0, test_top5 = 0;

  std::string to_json() const;
  static Counters from_json(const std::string& json);  // throws Error for other JSON
};

// Writes the same rows to metrics.csv and to a TensorBoard event file.
class MetricsLog {
 public:
  // Truncates both files to the lengths in `counters`.  Chooses counters.event_name if it is empty.
  MetricsLog(const std::filesystem::path& folder, Counters& counters);
  void add(const MetricsRow& row);
  void flush(Counters& counters);  // syncs both files to disk and stores their lengths in `counters`

 private:
  MetricsFile metrics_;
  EventFile events_;
};

}  // namespace vitrail::train
