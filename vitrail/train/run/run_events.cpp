// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_events_internal.h"

#include <algorithm>
#include <cstdio>

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

Candidate candidate_of(const EpochResult& result, const QualityOf& quality, const optim::Ema* ema, int64_t step) {
  if (!result.validation) return {};
  const Quality weights = quality(*result.validation);
  if (!result.average || !ema->warmed_up(step)) return {weights};
  const Quality average = quality(*result.average);
  return better(average, weights) ? Candidate{average, true} : Candidate{weights};
}

bool out_of_patience(const Recipe& recipe, const Position& position, const Counters& counters) {
  if (recipe.patience == 0 || counters.best.score < 0) return false;  // −1: nothing was validated
  return position.epoch - counters.best_epoch >= recipe.patience;
}

MetricsRow row_of(const char* event, const Evaluation& evaluation, int64_t step, int64_t epoch, double seconds) {
  MetricsRow row{.event = event, .step = step, .epoch = static_cast<double>(epoch), .loss = evaluation.loss};
  for (const Score& score : evaluation.scores) row.scores.push_back(score.value);
  row.seconds = seconds;
  return row;
}

std::string epoch_text(const Metrics& metrics, const EpochResult& result) {
  std::string text;
  if (result.validation) {
    char loss[64] = "";
    if (metrics.validates_loss) std::snprintf(loss, sizeof loss, "loss %.4f  ", result.validation->loss);
    text = str("  validation: ", loss, line_of(metrics.line, *result.validation));
  }
  return result.average ? text + "  EMA " + line_of(metrics.average_line, *result.average) : text;
}

void log_validation(const EpochResult& result, MetricsLog& log) {
  const auto add = [&](const char* event, const std::optional<Evaluation>& evaluation) {
    if (evaluation) log.add(row_of(event, *evaluation, result.step, result.epoch, result.seconds));
  };
  add("val", result.validation);
  add("val_ema", result.average);
}

}  // namespace vitrail::train
