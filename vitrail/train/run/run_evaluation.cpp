// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"
#include "vitrail/train/run/low_rank_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_history.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {

// Evaluates the model; each process takes its share of the images.
Measurement Run::measure(Split split) {
  const Clock::time_point start = Clock::now();
  const auto phase = split == Split::test ? Progress::Phase::test : Progress::Phase::validate;
  Measurement measurement = objective_->measure(split, [&](int64_t done, int64_t total) {
    if (callbacks_.progress && group_.is_rank_zero()) {
      Progress progress{
          .phase = phase, .epoch = position_.current_epoch(), .epochs = epochs(), .step = done, .steps = total};
      fill(progress, start, objective_->size(split));
      callbacks_.progress(progress);
    }
    if (stop_requested()) throw StopRequested{};
  });
  throughput_.add_evaluation(seconds_since(start));
  return measurement;
}

// Evaluates the EMA weights on the validation images.
Measurement Run::measure_average() {
  update_->ema()->swap();
  struct SwapBack {
    optim::Ema* ema;
    ~SwapBack() { ema->swap(); }
  } const swap_back{update_->ema()};
  return measure(Split::validation);
}

// Validates, keeps the weights if they are the best so far, and saves.
void Run::finish_epoch() {
  objective_->end_epoch();
  EpochResult result{.epoch = position_.epoch + 1, .step = position_.step};
  result.train = {counters_.epoch.mean_loss(), counters_.epoch.images, training_scores(counters_.epoch)};
  const bool last = position_.epoch + 1 == recipe_.epochs;
  Measurement weights, average;
  if (validates() && (last || result.epoch % recipe_.validate_every == 0)) {
    result.validation = weights = measure(Split::validation);
    if (update_->ema()) result.average = average = measure_average();
  }
  const bool validated = result.validation.has_value();
  const Candidate candidate = candidate_of(
      result, [this](const Evaluation& evaluation) { return objective_->quality(evaluation); }, update_->ema(),
      position_.step);
  result.best =
      validated ? objective_->replaces(candidate.is_average ? average : weights, counters_.best) : !validates() && last;
  result.seconds = seconds();
  result.text = epoch_text(objective_->metrics(), result);
  if (group_.is_rank_zero()) log_validation(result, *metrics_log_);
  if (result.best) keep_best(result.epoch, candidate);
  keep_for_page(result.epoch);
  if (group_.is_rank_zero() && update_->ema() && (validated || last))
    write_weights(folder_->checkpoint("ema"), update_->ema()->average());
  counters_.history.push_back(result);
  counters_.epoch = {};
  position_ = {position_.epoch + 1, 0, position_.step, position_.batch_images};
  if (validated) update_report(candidate.is_average ? average : weights, Split::validation, false);
  save();
  if (callbacks_.epoch && group_.is_rank_zero()) callbacks_.epoch(result);
  throughput_.begin_interval(objective_->waited_seconds());
}

bool Run::out_of_patience() const { return validates() && train::out_of_patience(recipe_, position_, counters_); }

void Run::write_model(const char* folder, const std::vector<nn::NamedTensor>& weights) const {
  if (!group_.is_rank_zero()) return;
  const std::filesystem::path path = folder_->path() / folder;
  const std::vector<nn::NamedTensor> saved = objective_->saved(weights);
  train::write_model(path, objective_->config_json(), merged(recipe_, saved));
  write_adapter(path, recipe_, objective_->config_json(), saved, row_.new_layers);
  objective_->write_beside(path, weights);
}

void Run::keep_best(int64_t epoch, const Candidate& candidate) {
  const autograd::NoGrad no_grad;
  const auto weights = candidate.is_average ? update_->ema()->average() : objective_->model().named_parameters();
  if (group_.is_rank_zero()) write_weights(folder_->checkpoint("best"), weights);
  write_model("model", weights);
  counters_.best = candidate.quality;
  counters_.best_epoch = epoch;
  counters_.best_is_average = candidate.is_average;
}

// The model that is trained, for `vitrail explain RUN`.
void Run::keep_for_page(int64_t epoch) const {
  const int64_t every = recipe_.explain.every;
  if (every == 0 || (epoch % every != 0 && epoch != recipe_.epochs)) return;
  const autograd::NoGrad no_grad;
  write_model(kept_folder(epoch).c_str(), objective_->model().named_parameters());
}

// Loads weights that rank 0 reads into the models of all processes.
void Run::load(const std::filesystem::path& weights) {
  const autograd::NoGrad no_grad;
  if (group_.is_rank_zero()) load_weights(weights, objective_->model().named_parameters());
  group_.broadcast_tensors(objective_->model().named_parameters());
}

// Evaluates the kept weights on the test images, or without a test set the best ones on the validation images for the
// report's details.
void Run::final_evaluation() {
  if (counters_.tested) return;
  const bool test = objective_->size(Split::test) > 0;
  const Split split = test ? Split::test : Split::validation;
  Measurement measurement;
  if (!test || !counters_.retrained) load(options_.folder / "checkpoints/best.safetensors");
  if (!test && validates() && objective_->reports_details()) measurement = measure(split);
  if (counters_.retrained) keep_retrained();
  if (test) measurement = measure(split);
  end_seconds_ = seconds();
  counters_.tested = true;
  if (test) {
    counters_.test = measurement;
    if (metrics_log_) metrics_log_->add(row_of("test", measurement, position_.step, position_.epoch, seconds()));
  }
  update_report(measurement, split, true);
}

void Run::update_report(const Measurement& measurement, Split split, bool finished) {
  if (!group_.is_rank_zero()) return;
  const Counters counters = current_counters();
  write_report(folder_->path(),
               {.recipe = &recipe_,
                .counters = &counters,
                .metrics = &objective_->metrics(),
                .subject = objective_->subject(),
                .images = {objective_->size(Split::training), objective_->size(Split::validation),
                           objective_->size(Split::test)},
                .parameters = objective_->model().num_parameters(),
                .finished = finished,
                .processes = group_.size(),
                .environment = environment_,
                .add_section = [&](Report& report) { objective_->add_section(measurement, split, report); },
                .model_card = [&](const ReportInput& input) { return objective_->model_card(input); }});
}

}  // namespace vitrail::train
