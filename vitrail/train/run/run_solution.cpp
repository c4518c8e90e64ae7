// SPDX-License-Identifier: Apache-2.0
// A run whose objective computes its weights at once and writes nothing before its end; the beginning of other runs.
#include "vitrail/base/error.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {
namespace {

// A row has the first score.
MetricsRow solution_row(const char* event, const Evaluation& evaluation, int64_t iterations, double seconds) {
  MetricsRow row = row_of(event, evaluation, iterations, 1, seconds);
  row.scores.resize(1);
  return row;
}

}  // namespace

Objective::SolveProgress Run::solve_progress() {
  return [this, start = Clock::now()](Progress::Phase phase, int64_t done, int64_t total) mutable {
    Progress progress{.phase = phase, .epoch = 1, .epochs = epochs(), .step = done, .steps = total};
    fill(progress, start, phase == Progress::Phase::features ? objective_->size(Split::training) : 0);
    if (callbacks_.progress && group_.is_rank_zero()) callbacks_.progress(progress);
    if (stop_requested()) throw StopRequested{};
    if (done == total) start = Clock::now();  // the next phase begins
  };
}

// Before the first step.
void Run::begin() {
  if (position_.step > 0 || position_.epoch > 0) return;
  counters_.baselines = objective_->begin(solve_progress());
  for (const Score& score : counters_.baselines)
    log(str("before training, ", score.title, " on the features: ", data::accuracy_text(score.value, score.images)));
  if (objective_->keeps_start() && validates()) measure_start();
  keep_for_page(0);
}

// The model is that of the start until an epoch is better.
void Run::measure_start() {
  const Evaluation start = measure(Split::validation);
  counters_.start = start;
  objective_->start_from(start);
  keep_best(0, {objective_->quality(start)});
  if (metrics_log_) metrics_log_->add(row_of("start", start, 0, 0, seconds()));
  log("before training: " + line_of(objective_->metrics().line, start));
}

TrainingResult Run::solve() {
  log_setup();
  const Solution solution = objective_->solve(solve_progress());
  position_ = {.step_in_epoch = 1, .step = solution.iterations};
  counters_.skipped_images = solution.skipped;
  const bool tests = objective_->size(Split::test) > 0;
  Measurement validation, test;
  if (validates()) validation = measure(Split::validation);
  if (tests) test = measure(Split::test);
  if (validates()) counters_.best = {validation.scores.front().value, validation.loss};
  counters_.test = test;
  counters_.tested = true;
  end_seconds_ = counters_.seconds = seconds();
  begin_files();
  write_model("model", objective_->model().named_parameters());
  const auto add = [&](const char* event, const Evaluation& evaluation) {
    metrics_log_->add(solution_row(event, evaluation, solution.iterations, seconds()));
  };
  add("train", solution.training);
  if (validates() || solution.cross_validated) add("val", validates() ? validation : *solution.cross_validated);
  if (tests) add("test", test);
  metrics_log_->flush(counters_);
  update_report(tests ? test : validation, tests ? Split::test : Split::validation, true);
  TrainingResult result = this->result(false);
  result.epoch = 1;
  result.validation_images = validation.images;
  if (result.best) result.best->images = validation.images;
  if (solution.cross_validated) result.cross_validated = solution.cross_validated->scores.front();
  return result;
}

}  // namespace vitrail::train
