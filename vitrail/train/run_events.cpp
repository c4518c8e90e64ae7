// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run_events_internal.h"

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

}  // namespace vitrail::train
