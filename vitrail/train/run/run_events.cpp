// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_events_internal.h"

#include <algorithm>

#include "vitrail/base/error.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxSkipsInARow = 100;  // "skip" is for rare non-finite steps; more mean that training has diverged
constexpr int64_t kMinRows = 20;          // training rows of metrics.csv, so that a short run has curves

}  // namespace

bool row_is_due(const Recipe& recipe, const Position& position, const EpochLength& length) {
  const int64_t interval = std::clamp<int64_t>(recipe.epochs * length.steps / kMinRows, 1, recipe.log_every);
  const bool may_end = position.epoch + 1 == recipe.epochs || recipe.patience > 0;
  return position.step == 1 || (may_end && position.step_in_epoch == length.batches) || position.step % interval == 0;
}

bool checkpoint_is_due(const Recipe& recipe, const Position& position, const EpochLength& length, int64_t saved_step,
                       double seconds) {
  const CheckpointRecipe& interval = recipe.checkpoint;
  if (position.step_in_epoch == length.batches) return false;  // the end of the epoch saves anyway
  if (interval.every_steps > 0 && position.step - saved_step >= interval.every_steps) return true;
  return interval.every_minutes > 0 && seconds >= 60 * interval.every_minutes;
}

void count_step(const StepResult& step, const Position& position, Counters& counters) {
  if (step.updated) {
    counters.skipped_in_a_row = 0;
    counters.interval.gradient_norm += step.gradient_norm;
    ++counters.interval.steps;
  } else {
    ++counters.skipped_steps;
    if (++counters.skipped_in_a_row >= kMaxSkipsInARow) {
      throw Error(str("step ", position.step), "a finite loss",
                  str(kMaxSkipsInARow, " steps in a row without a finite loss"));
    }
  }
}

Candidate candidate_of(const EpochResult& result, const optim::Ema* ema, int64_t step) {
  const Score weights{result.val_top1, result.val_loss}, average{result.ema_top1, result.ema_loss};
  const bool use_average = result.has_ema && ema->warmed_up(step) && better(average, weights);
  return {use_average ? average : weights, use_average};
}

bool out_of_patience(const Recipe& recipe, const Position& position, const Counters& counters) {
  if (recipe.patience == 0 || counters.best.top1 < 0) return false;  // −1: nothing was validated
  return position.epoch - counters.best_epoch >= recipe.patience;
}

void log_validation(const EpochResult& result, MetricsLog& log) {
  const auto add_row = [&](const char* event, double loss, double top1, double top5) {
    log.add({.event = event,
             .step = result.step,
             .epoch = static_cast<double>(result.epoch),
             .loss = loss,
             .top1 = top1,
             .top5 = top5,
             .seconds = result.seconds});
  };
  if (result.validated) add_row("val", result.val_loss, result.val_top1, result.val_top5);
  if (result.has_ema) add_row("val_ema", result.ema_loss, result.ema_top1, result.ema_top5);
}

}  // namespace vitrail::train
