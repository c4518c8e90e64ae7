// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/train/run/run_events_internal.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {
namespace {

// Epochs so far, with fractions.
double epochs_of(const Position& position, int64_t batches) {
  return static_cast<double>(position.epoch) +
         static_cast<double>(position.step_in_epoch) / static_cast<double>(batches);
}

}  // namespace

// Trains from the current position to the end of the epoch.  Returns false if a stop was requested.
bool Run::train_epoch() {
  objective_->start_epoch(position_.epoch, position_.step_in_epoch);
  while (position_.step_in_epoch < batches_) {
    // The step accumulates the batches [first, first + count) of the epoch.
    const int64_t first = position_.step_in_epoch / recipe_.accumulate * recipe_.accumulate;
    const int64_t count = std::min(recipe_.accumulate, batches_ - first);
    const BatchPosition batch{static_cast<uint64_t>(position_.epoch * batches_ + position_.step_in_epoch),
                              position_.step_in_epoch - first, count, epochs_of(position_, batches_),
                              counters_.skipped_images + skipped_locally_};
    count_batch(objective_->train_batch(
        batch, [&](const Tensor& loss, const BatchResult& local) { return update_->accumulate(loss, local, batch); }));
    ++position_.step_in_epoch;
    if (position_.step_in_epoch - first == count) {
      const int64_t scheduled = position_.epoch * steps_ + first / recipe_.accumulate;
      const StepResult step = update_->apply(position_.step++, scheduled);
      if (step.updated) {
        const autograd::NoGrad no_grad;
        objective_->end_step(static_cast<double>(scheduled + 1) / static_cast<double>(recipe_.epochs * steps_));
      }
      if (!end_step(step)) return false;
    }
    report_progress();
  }
  return true;
}

bool Run::save_is_due() const {
  return checkpoint_is_due(recipe_, position_, {batches_, steps_}, saved_step_, seconds_since(saved_));
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
  count_step(step, position_, counters_);
  if (row_is_due(recipe_, position_, {batches_, steps_})) log_interval(step);
  if (stop || save_now) save();
  return !stop;
}

void Run::count_batch(const BatchResult& batch) {
  skipped_locally_ += batch.skipped;
  throughput_.add_batch(batch.images);
  if (!std::isfinite(batch.loss)) return;  // the step will be skipped
  for (RunningSums* sums : {&counters_.epoch, &counters_.interval}) {
    sums->loss += batch.loss * static_cast<double>(batch.images);
    sums->correct += batch.correct;
    sums->images += batch.images;
  }
}

std::vector<Score> Run::training_scores(const RunningSums& sums) const {
  const Metrics& metrics = objective_->metrics();
  if (!metrics.in_training) return {};
  return scores_of(metrics.each, {sums.accuracy()}, sums.images);
}

void Run::log_interval(const StepResult& step) {
  const RunningSums& sums = counters_.interval;
  MetricsRow row{.event = "train", .step = position_.step};
  row.epoch = epochs_of(position_, batches_);
  row.loss = sums.mean_loss();
  for (const Score& score : training_scores(sums)) row.scores.push_back(score.value);
  row.learning_rate = step.learning_rate;
  if (sums.steps > 0) row.gradient_norm = sums.gradient_norm / static_cast<double>(sums.steps);
  throughput_.fill(row, sums.images, objective_->waited_seconds());
  row.seconds = seconds();
  if (metrics_log_) metrics_log_->add(row);
  counters_.interval = {};
  throughput_.begin_interval(objective_->waited_seconds());
}

void Run::report_progress() const {
  if (!callbacks_.progress || !group_.is_rank_zero()) return;
  Progress progress{
      .epoch = position_.epoch + 1, .epochs = recipe_.epochs, .step = position_.step_in_epoch, .steps = batches_};
  progress.loss = counters_.epoch.mean_loss();
  progress.scores = training_scores(counters_.epoch);
  throughput_.fill(progress, (recipe_.epochs - position_.epoch) * batches_ - position_.step_in_epoch,
                   objective_->waited_seconds());
  callbacks_.progress(progress);
}

}  // namespace vitrail::train
