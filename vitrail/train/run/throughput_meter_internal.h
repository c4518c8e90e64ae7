// SPDX-License-Identifier: Apache-2.0
#pragma once
// Measures the throughput of training, since the start of the process and since the last row of metrics.csv.
#include <chrono>

#include "vitrail/train/run/metrics_file_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sets the throughput and the remaining time of a phase of `images` images.  progress.step of its progress.steps
// batches are done since `start`.
void fill(Progress& progress, Clock::time_point start, int64_t images);

// `waited` is always the total time in seconds that training has waited for the data loader.
class ThroughputMeter {
 public:
  double seconds() const { return seconds_since(start_); }  // since construction
  void add_batch(int64_t images);
  void add_evaluation(double seconds) { evaluation_seconds_ += seconds; }
  void begin_interval(double waited);

  // Sets the throughput of the interval.  `images`: trained since begin_interval().
  void fill(MetricsRow& row, int64_t images, double waited) const;
  // Sets the throughput since the start and the remaining time.  Call it after at least one batch.
  void fill(Progress& progress, int64_t batches_left, double waited) const;

 private:
  Clock::time_point start_ = Clock::now(), interval_start_ = Clock::now();
  double interval_waited_ = 0;     // `waited` at the start of the interval
  double evaluation_seconds_ = 0;  // spent in evaluations
  int64_t batches_ = 0, images_ = 0;
};

}  // namespace vitrail::train
