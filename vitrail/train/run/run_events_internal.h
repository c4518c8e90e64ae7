// SPDX-License-Identifier: Apache-2.0
#pragma once
// What follows from the position and the results of a run: rows of metrics.csv, checkpoints, skipped steps, the weights
// that are kept.
#include <functional>

#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/counters_internal.h"
#include "vitrail/train/run/metrics_log_internal.h"
#include "vitrail/train/run/quality.h"
#include "vitrail/train/run/weight_update_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {

// The length of an epoch.
struct EpochLength {
  int64_t batches = 0, steps = 0;  // steps of the optimiser
};

// Whether a row of metrics.csv is due after a step: every log_every steps or more often, and after the first and the
// last step.  With early stopping, every epoch may be the last.
bool row_is_due(const Recipe& recipe, const Position& position, const EpochLength& length);

// Whether a checkpoint is due after a step.  The last one was saved after `saved_step` steps, `seconds` ago.
bool checkpoint_is_due(const Recipe& recipe, const Position& position, const EpochLength& length, int64_t saved_step,
                       double seconds);

// Counts a step, the position's last one.  Throws Error after many skipped steps in a row.
void count_step(const StepResult& step, const Position& position, Counters& counters);

// The results that decide about the weights of an epoch.
struct Candidate {
  Quality quality;          // on the validation images; score −1 without any
  bool is_average = false;  // whether the average is to be kept instead of the weights
};

using QualityOf = std::function<Quality(const Evaluation&)>;  // Objective::quality()

// Those of the average if it is better and has warmed up.
Candidate candidate_of(const EpochResult& result, const QualityOf& quality, const optim::Ema* ema, int64_t step);

// Whether the recipe's patience has passed since the best epoch, without a better validation loss.
bool out_of_patience(const Recipe& recipe, const Position& position, const Counters& counters);

// A row of metrics.csv without what only training has.
MetricsRow row_of(const char* event, const Evaluation& evaluation, int64_t step, int64_t epoch, double seconds);

// EpochResult::text
std::string epoch_text(const Metrics& metrics, const EpochResult& result);

// The rows of an epoch's validation.
void log_validation(const EpochResult& result, MetricsLog& log);

}  // namespace vitrail::train
