// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/train/run_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxSkipsInARow = 100;  // "skip" is for rare non-finite steps; more mean that training has diverged
constexpr int64_t kMinRows = 20;          // training rows of metrics.csv, so that a short run has curves

}  // namespace

// Trains from the current position to the end of the epoch.  Returns false if a stop was requested.
bool Run::train_epoch() {
  loader_.start(position_.epoch, position_.step_in_epoch);
  while (auto batch = loader_.next()) {
    // The step accumulates the batches [first, first + count) of the epoch.
    const int64_t first = position_.step_in_epoch / recipe_.accumulate * recipe_.accumulate;
    const int64_t count = std::min(recipe_.accumulate, batches_ - first);
    training_step_.set_epoch(static_cast<double>(position_.epoch) +
                             static_cast<double>(position_.step_in_epoch) / static_cast<double>(batches_));
    const BatchPosition batch_position{static_cast<uint64_t>(position_.epoch * batches_ + position_.step_in_epoch),
                                       position_.step_in_epoch - first, count};
    count_batch(training_step_.accumulate(*batch, batch_position), static_cast<int64_t>(batch->skipped.size()));
    ++position_.step_in_epoch;
    if (position_.step_in_epoch - first == count) {
      const int64_t scheduled = position_.epoch * steps_ + first / recipe_.accumulate;
      if (!end_step(training_step_.update(position_.step++, scheduled))) return false;
    }
    report_progress();
  }
  return true;
}

// Counts a step and saves a checkpoint if it is due.  Returns false if a stop was requested in any process.  Sums the
// skipped images over the processes here, so that a checkpoint contains them.
bool Run::end_step(const StepResult& step) {
  std::vector<double> sums{callbacks_.stop && callbacks_.stop() ? 1.0 : 0.0,
                           group_.is_rank_zero() && save_is_due() ? 1.0 : 0.0, static_cast<double>(skipped_locally_)};
  group_.all_reduce_sum(sums);
  const bool stop = sums[0] > 0, save_now = sums[1] > 0;
  counters_.skipped_images += std::llround(sums[2]);
  skipped_locally_ = 0;
  count_step(step);
  if (stop || save_now) save();
  return !stop;
}

void Run::count_batch(const BatchResult& batch, int64_t skipped) {
  skipped_locally_ += skipped;
  throughput_.add_batch(batch.images);
  if (!std::isfinite(batch.loss)) return;  // the step will be skipped
  for (RunningSums* sums : {&counters_.epoch, &counters_.interval}) {
    sums->loss += batch.loss * static_cast<double>(batch.images);
    sums->correct += batch.correct;
    sums->images += batch.images;
  }
}

void Run::count_step(const StepResult& step) {
  if (step.updated) {
    counters_.skipped_in_a_row = 0;
    counters_.interval.gradient_norm += step.gradient_norm;
    ++counters_.interval.steps;
  } else {
    ++counters_.skipped_steps;
    if (++counters_.skipped_in_a_row >= kMaxSkipsInARow)
      throw Error(str("step ", position_.step), "a finite loss",
                  str(kMaxSkipsInARow, " steps in a row without a finite loss"));
  }
  if (is_logged()) log_interval(step);
}

// A row of metrics.csv is due every log_every steps or more often, and after the first and the last step.  With early
// stopping, every epoch may be the last.
bool Run::is_logged() const {
  const int64_t interval = std::clamp<int64_t>(recipe_.epochs * steps_ / kMinRows, 1, recipe_.log_every);
  const bool may_end = position_.epoch + 1 == recipe_.epochs || recipe_.patience > 0;
  return position_.step == 1 || (may_end && position_.step_in_epoch == batches_) || position_.step % interval == 0;
}

void Run::log_interval(const StepResult& step) {
  const RunningSums& sums = counters_.interval;
  MetricsRow row{.event = "train", .step = position_.step};
  row.epoch = static_cast<double>(position_.epoch) +
              static_cast<double>(position_.step_in_epoch) / static_cast<double>(batches_);
  row.loss = sums.mean_loss();
  if (!data_.multi_label) row.top1 = sums.accuracy();
  row.learning_rate = step.learning_rate;
  if (sums.steps > 0) row.gradient_norm = sums.gradient_norm / static_cast<double>(sums.steps);
  throughput_.fill(row, sums.images, loader_.waited_seconds());
  row.seconds = seconds();
  if (metrics_log_) metrics_log_->add(row);
  counters_.interval = {};
  throughput_.begin_interval(loader_.waited_seconds());
}

void Run::report_progress() const {
  if (!callbacks_.progress || !group_.is_rank_zero()) return;
  Progress progress{
      .epoch = position_.epoch + 1, .epochs = recipe_.epochs, .step = position_.step_in_epoch, .steps = batches_};
  progress.loss = counters_.epoch.mean_loss();
  progress.accuracy = data_.multi_label ? std::nan("") : counters_.epoch.accuracy();
  throughput_.fill(progress, (recipe_.epochs - position_.epoch) * batches_ - position_.step_in_epoch,
                   loader_.waited_seconds());
  callbacks_.progress(progress);
}

bool Run::save_is_due() const {
  const CheckpointRecipe& interval = recipe_.checkpoint;
  if (position_.step_in_epoch == batches_) return false;  // the end of the epoch saves anyway
  if (interval.every_steps > 0 && position_.step - saved_step_ >= interval.every_steps) return true;
  return interval.every_minutes > 0 && seconds_since(saved_) >= 60 * interval.every_minutes;
}

}  // namespace vitrail::train
