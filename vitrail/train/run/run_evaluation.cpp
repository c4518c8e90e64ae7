// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"
#include "vitrail/train/run/all_gather_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {

// Evaluates the model; each process takes its share of the images.
Evaluation Run::evaluate_subset(const Subset& subset, Progress::Phase phase) {
  const Clock::time_point start = Clock::now();
  data::Loader loader = evaluation_loader(subset, loader_.options());
  const auto classes = static_cast<int64_t>(data_.classes.size());
  Evaluation evaluation = evaluate(prepared_.model, loader, classes, [&](int64_t done, int64_t total) {
    if (callbacks_.progress && group_.is_rank_zero()) {
      Progress progress{
          .phase = phase, .epoch = position_.current_epoch(), .epochs = recipe_.epochs, .step = done, .steps = total};
      fill(progress, start, subset.size());
      callbacks_.progress(progress);
    }
    if (stop_requested()) throw StopRequested{};
  });
  evaluation = all_gather(group_, std::move(evaluation));
  if (group_.is_rank_zero()) unreadable_.add_left_out(subset, evaluation.skipped);
  throughput_.add_evaluation(seconds_since(start));
  return evaluation;
}

// Evaluates the EMA weights on the validation images.
Evaluation Run::evaluate_ema() {
  training_step_.ema()->swap();
  struct SwapBack {
    optim::Ema* ema;
    ~SwapBack() { ema->swap(); }
  } const swap_back{training_step_.ema()};
  return evaluate_subset(data_.validation, Progress::Phase::validate);
}

// Evaluates the weights and the EMA weights on the validation images.
Run::Validation Run::validate(EpochResult& result) {
  Validation of;
  of.weights = evaluate_subset(data_.validation, Progress::Phase::validate);
  result.val_images = of.weights.images;
  result.val_loss = of.weights.loss;
  result.val_top1 = of.weights.top1;
  result.val_top5 = of.weights.top5;
  if (!training_step_.ema()) return of;
  of.average = evaluate_ema();
  result.has_ema = true;
  result.ema_loss = of.average.loss;
  result.ema_top1 = of.average.top1;
  result.ema_top5 = of.average.top5;
  return of;
}

// Validates, keeps the weights if they are the best so far, and saves.  Of equally good weights the later are kept.
void Run::finish_epoch() {
  unreadable_.require_classes(data_, recipe_.data);
  EpochResult result{.epoch = position_.epoch + 1, .step = position_.step, .multi_label = data_.multi_label};
  result.train_loss = counters_.epoch.mean_loss();
  result.train_top1 = counters_.epoch.accuracy();
  const bool last = position_.epoch + 1 == recipe_.epochs;
  result.validated = data_.validation.dataset && (last || result.epoch % recipe_.validate_every == 0);
  Validation validation;
  if (result.validated) validation = validate(result);
  const Candidate candidate =
      result.validated ? candidate_of(result, training_step_.ema(), position_.step) : Candidate{};
  result.best = result.validated ? !better(counters_.best, candidate.score) : !data_.validation.dataset && last;
  result.seconds = seconds();
  if (group_.is_rank_zero()) log_validation(result, *metrics_log_);
  if (result.best) keep_best(result.epoch, candidate);
  if (group_.is_rank_zero() && training_step_.ema() && (result.validated || last))
    write_weights(folder_->checkpoint("ema"), training_step_.ema()->average());
  counters_.history.push_back(result);
  counters_.epoch = {};
  position_ = {position_.epoch + 1, 0, position_.step, position_.batch_images};
  if (result.validated)
    update_report(candidate.is_average ? validation.average : validation.weights, data_.validation, false);
  save();
  if (callbacks_.epoch && group_.is_rank_zero()) callbacks_.epoch(result);
  throughput_.begin_interval(loader_.waited_seconds());
}

bool Run::out_of_patience() const {
  return data_.validation.dataset && train::out_of_patience(recipe_, position_, counters_);
}

void Run::keep_best(int64_t epoch, const Candidate& candidate) {
  const autograd::NoGrad no_grad;
  const auto weights = candidate.is_average ? training_step_.ema()->average() : prepared_.model.named_parameters();
  if (group_.is_rank_zero()) {
    write_weights(folder_->checkpoint("best"), weights);
    write_model(folder_->path() / "model", prepared_.config, weights);
  }
  counters_.best = candidate.score;
  counters_.best_epoch = epoch;
  counters_.best_is_average = candidate.is_average;
}

// Loads the best weights into the models of all processes.
void Run::load_best() {
  const autograd::NoGrad no_grad;
  if (group_.is_rank_zero()) load_weights(folder_->checkpoint("best"), prepared_.model.named_parameters());
  group_.broadcast_tensors(prepared_.model.named_parameters());
}

// Evaluates the best weights on the test images, or for the report on the validation images if there is no test set.
void Run::final_evaluation() {
  if (counters_.tested) return;
  load_best();
  const bool test = data_.test.dataset != nullptr;
  const Subset& subset = test ? data_.test : data_.validation;
  Evaluation evaluation;
  if (subset.dataset) evaluation = evaluate_subset(subset, test ? Progress::Phase::test : Progress::Phase::validate);
  end_seconds_ = seconds();
  counters_.tested = true;
  if (test) {
    counters_.test_loss = evaluation.loss;
    counters_.test_top1 = evaluation.top1;
    counters_.test_top5 = evaluation.top5;
    counters_.test_images = evaluation.images;
    if (metrics_log_)
      metrics_log_->add({.event = "test",
                         .step = position_.step,
                         .epoch = static_cast<double>(position_.epoch),
                         .loss = evaluation.loss,
                         .top1 = evaluation.top1,
                         .top5 = evaluation.top5,
                         .seconds = seconds()});
  }
  update_report(evaluation, subset, true);
}

void Run::update_report(const Evaluation& evaluation, const Subset& subset, bool finished) {
  if (!group_.is_rank_zero()) return;
  if (!report_images_) report_images_ = report_images(data_.train, loader_.options());
  const Counters counters = current_counters();
  write_report(folder_->path(), {.recipe = &recipe_,
                                 .config = &prepared_.config,
                                 .data = &data_,
                                 .counters = &counters,
                                 .evaluation = &evaluation,
                                 .subset = &subset,
                                 .parameters = prepared_.model.num_parameters(),
                                 .finished = finished,
                                 .processes = group_.size(),
                                 .images = &*report_images_,
                                 .environment = environment_});
}

}  // namespace vitrail::train
