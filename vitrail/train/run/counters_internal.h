// SPDX-License-Identifier: Apache-2.0
#pragma once
// Running sums and results of a run, which its checkpoints keep.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/run/quality.h"
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

// Saved with each checkpoint so that a resumed run continues them.
struct Counters {
  RunningSums epoch, interval;   // since the start of the epoch, and since the last row of metrics.csv
  Quality best;                  // results of the kept weights; its score is −1 before the first validation
  int64_t best_epoch = 0;        // epoch of the kept weights
  bool best_is_average = false;  // whether the kept weights are EMA weights
  std::vector<EpochResult> history;
  int64_t skipped_images = 0, skipped_steps = 0, skipped_in_a_row = 0;
  double seconds = 0;  // training time
  CommunicationTimes communication;
  uint64_t metrics_bytes = 0, event_bytes = 0;  // lengths of the files at the checkpoint
  std::string event_name;                       // file name of the TensorBoard event file
  bool tested = false;
  Evaluation test;
  std::vector<Score> baselines;         // Objective::begin()
  std::optional<Evaluation> start;      // the weights before the first step, if Objective::keeps_start()
  std::optional<Retraining> retrained;  // the second training, if the kept weights have one

  // A checkpoint names the scores "top1", "top5", "score3", …, whatever the objective calls them.
  std::string to_json() const;
  // `metrics`: of the objective.  Throws Error for other JSON, for a value out of its range, and for an event_name that
  // is not the name of an event file: the folder of a run may come from anywhere.
  static Counters from_json(const std::string& json, const std::vector<Metric>& metrics = std::vector<Metric>(2));
};

// The number of validation images that the last evaluation could read, and the test with that of its images; `all` if
// the counters have none.
int64_t validated_images(const Counters& counters, int64_t all);
Evaluation tested(const Counters& counters, int64_t all);

}  // namespace vitrail::train
