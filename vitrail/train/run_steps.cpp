// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/train/run_internal.h"

namespace vitrail::train {
namespace {

constexpr int64_t kSkipsInARow = 100;  // "skip" is for a rare bad step; this many say that the run has diverged

}  // namespace

// The rest of the epoch under way; false when it was told to stop.
bool Run::train_epoch() {
  loader_.start(at_.epoch, at_.step_in_epoch);
  while (auto batch = loader_.next()) {
    const int64_t first = at_.step_in_epoch / recipe_.accumulate * recipe_.accumulate;
    const int64_t parts = std::min(recipe_.accumulate, batches_ - first);
    stepper_.at_epoch(static_cast<double>(at_.epoch) +
                      static_cast<double>(at_.step_in_epoch) / static_cast<double>(batches_));
    const BatchPlace place{static_cast<uint64_t>(at_.epoch * batches_ + at_.step_in_epoch), at_.step_in_epoch - first,
                           parts};
    after_batch(stepper_.add(*batch, place), static_cast<int64_t>(batch->skipped.size()));
    ++at_.step_in_epoch;
    if (at_.step_in_epoch - first == parts) {
      const int64_t scheduled = at_.epoch * steps_ + first / recipe_.accumulate;
      if (!end_step(stepper_.update(at_.step++, scheduled))) return false;
    }
    report_progress();
  }
  return true;
}

// Counts and saves; false when some process was told to stop.  Images that were skipped are summed over the processes
// here, for a checkpoint.
bool Run::end_step(const StepOutcome& outcome) {
  std::vector<double> said{callbacks_.stop && callbacks_.stop() ? 1.0 : 0.0, crew_.leads() && save_is_due() ? 1.0 : 0.0,
                           static_cast<double>(skipped_here_)};
  crew_.sum(said);
  counters_.skipped_images += std::llround(said[2]);
  skipped_here_ = 0;
  after_step(outcome);
  const bool stop = said[0] > 0;
  if (stop || said[1] > 0) save();
  return !stop;
}

void Run::after_batch(const BatchOutcome& outcome, int64_t skipped) {
  skipped_here_ += skipped;
  meter_.add_batch(outcome.images);
  if (!std::isfinite(outcome.loss)) return;  // the step is left out, and so are its figures
  for (Sums* sums : {&counters_.epoch, &counters_.interval}) {
    sums->loss += outcome.loss * static_cast<double>(outcome.images);
    sums->correct += outcome.correct;
    sums->images += outcome.images;
  }
}

void Run::after_step(const StepOutcome& outcome) {
  if (outcome.updated) {
    counters_.skipped_in_a_row = 0;
    counters_.interval.gradient_norm += outcome.gradient_norm;
    ++counters_.interval.steps;
  } else {
    ++counters_.skipped_steps;
    if (++counters_.skipped_in_a_row >= kSkipsInARow)
      throw Error(str("step ", at_.step), "a finite loss now and then",
                  str(kSkipsInARow, " steps in a row without one"));
  }
  if (at_.step % recipe_.log_every == 0) log_interval(outcome);
}

void Run::log_interval(const StepOutcome& outcome) {
  const Sums& sums = counters_.interval;
  MetricsRow row{.event = "train", .step = at_.step};
  row.epoch = static_cast<double>(at_.epoch) + static_cast<double>(at_.step_in_epoch) / static_cast<double>(batches_);
  row.loss = sums.mean_loss();
  row.top1 = sums.accuracy();
  row.learning_rate = outcome.learning_rate;
  if (sums.steps > 0) row.gradient_norm = sums.gradient_norm / static_cast<double>(sums.steps);
  meter_.fill(row, sums.images, loader_.waited_seconds());
  row.seconds = seconds();
  if (journal_) journal_->add(row);
  counters_.interval = {};
  meter_.begin_interval(loader_.waited_seconds());
}

void Run::report_progress() const {
  if (!callbacks_.progress || !crew_.leads()) return;
  Progress progress{.epoch = at_.epoch + 1, .epochs = recipe_.epochs, .step = at_.step_in_epoch, .steps = batches_};
  progress.loss = counters_.epoch.mean_loss();
  progress.accuracy = counters_.epoch.accuracy();
  meter_.fill(progress, (recipe_.epochs - at_.epoch) * batches_ - at_.step_in_epoch, loader_.waited_seconds());
  callbacks_.progress(progress);
}

bool Run::save_is_due() const {
  const CheckpointRecipe& when = recipe_.checkpoint;
  if (at_.step_in_epoch == batches_) return false;  // the epoch's end saves anyway
  if (when.every_steps > 0 && at_.step - saved_step_ >= when.every_steps) return true;
  return when.every_minutes > 0 && seconds_since(saved_) >= 60 * when.every_minutes;
}

}  // namespace vitrail::train
