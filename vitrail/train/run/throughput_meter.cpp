// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/train/run/throughput_meter_internal.h"

namespace vitrail::train {
namespace {

constexpr double kMinSeconds = 1e-9;  // avoids a division by zero

}  // namespace

void fill(Progress& progress, Clock::time_point start, int64_t images) {
  const double per_step = std::max(kMinSeconds, seconds_since(start)) / static_cast<double>(progress.step);
  progress.images_per_second = static_cast<double>(images) / (per_step * static_cast<double>(progress.steps));
  progress.seconds_left = per_step * static_cast<double>(progress.steps - progress.step);
}

void ThroughputMeter::add_batch(int64_t images) {
  ++batches_;
  images_ += images;
}

void ThroughputMeter::begin_interval(double waited) {
  interval_start_ = Clock::now();
  interval_waited_ = waited;
}

void ThroughputMeter::fill(MetricsRow& row, int64_t images, double waited) const {
  const double elapsed = std::max(kMinSeconds, seconds_since(interval_start_));
  row.images_per_second = static_cast<double>(images) / elapsed;
  row.data_wait = std::min(1.0, (waited - interval_waited_) / elapsed);
}

void ThroughputMeter::fill(Progress& progress, int64_t batches_left, double waited) const {
  const double elapsed = std::max(kMinSeconds, seconds()),
               training = std::max(kMinSeconds, elapsed - evaluation_seconds_);
  progress.images_per_second = static_cast<double>(images_) / training;
  progress.data_wait = waited / training;
  progress.seconds_left = elapsed / static_cast<double>(batches_) * static_cast<double>(batches_left);
}

}  // namespace vitrail::train
