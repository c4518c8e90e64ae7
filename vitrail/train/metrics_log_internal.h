// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run remembers of itself beside the weights, and where it writes it down.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/evaluation.h"
#include "vitrail/train/event_file.h"
#include "vitrail/train/metrics_file.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// Running sums of training steps.
struct Sums {
  double loss = 0;  // over images
  int64_t correct = 0, images = 0;
  double gradient_norm = 0;
  int64_t steps = 0;
  double mean_loss() const { return images ? loss / static_cast<double>(images) : 0; }
  double accuracy() const { return images ? static_cast<double>(correct) / static_cast<double>(images) : 0; }
};

// Saved with every checkpoint, as JSON: a resumed run goes on in the middle of a sum.
struct Counters {
  Sums epoch, interval;  // since the epoch began, since the last row
  double best_top1 = -1;
  int64_t best_epoch = 0;
  bool best_is_average = false;
  std::vector<EpochResult> history;
  int64_t skipped_images = 0, skipped_steps = 0, skipped_in_a_row = 0;
  double seconds = 0;  // of training so far
  ExchangeTimes exchange;
  uint64_t metrics_bytes = 0, event_bytes = 0;
  std::string event_name;
  bool tested = false;
  double test_loss = 0, test_top1 = 0, test_top5 = 0;

  std::string to_json() const;
  static Counters from_json(const std::string& json);  // throws Error when it is none
};

// metrics.csv and TensorBoard's file, kept alike.
class MetricsLog {
 public:
  // Cuts both back to what the counters say; event_name is chosen where it is empty.
  MetricsLog(const std::filesystem::path& folder, Counters& counters);
  void add(const MetricsRow& row);
  void flush(Counters& counters);  // both to the disk, their lengths into the counters

 private:
  MetricsFile metrics_;
  EventFile events_;
};

}  // namespace vitrail::train
