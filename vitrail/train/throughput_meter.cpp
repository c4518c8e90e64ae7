// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/train/throughput_meter_internal.h"

namespace vitrail::train {
namespace {

constexpr double kShortest = 1e-9;  // seconds: what is divided by

}  // namespace

void ThroughputMeter::add_batch(int64_t images) {
  ++batches_;
  images_ += images;
}

void ThroughputMeter::begin_interval(double waited) {
  interval_began_ = Clock::now();
  interval_waited_ = waited;
}

void ThroughputMeter::fill(MetricsRow& row, int64_t images, double waited) const {
  const double elapsed = std::max(kShortest, seconds_since(interval_began_));
  row.images_per_second = static_cast<double>(images) / elapsed;
  row.data_wait = std::min(1.0, (waited - interval_waited_) / elapsed);
}

void ThroughputMeter::fill(Progress& progress, int64_t batches_left, double waited) const {
  const double elapsed = std::max(kShortest, seconds()), training = std::max(kShortest, elapsed - evaluated_);
  progress.images_per_second = static_cast<double>(images_) / training;
  progress.data_wait = waited / training;
  progress.seconds_left = elapsed / static_cast<double>(batches_) * static_cast<double>(batches_left);
}

}  // namespace vitrail::train
