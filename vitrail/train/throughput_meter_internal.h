// SPDX-License-Identifier: Apache-2.0
#pragma once
// How fast a run goes: over this process's life, and since the last row of metrics.csv.
#include <chrono>

#include "vitrail/train/metrics_file.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class ThroughputMeter {
 public:
  double seconds() const { return seconds_since(started_); }
  void add_batch(int64_t images);
  void add_evaluation(double seconds) { evaluated_ += seconds; }

  // `waited`: seconds that training has waited for data so far.
  void begin_interval(double waited);
  void fill(MetricsRow& row, int64_t images, double waited) const;           // of the interval
  void fill(Progress& progress, int64_t batches_left, double waited) const;  // of the whole; after a batch

 private:
  Clock::time_point started_ = Clock::now(), interval_began_ = Clock::now();
  double interval_waited_ = 0, evaluated_ = 0;  // seconds: waited before the interval, spent in evaluations
  int64_t batches_ = 0, images_ = 0;
};

}  // namespace vitrail::train
