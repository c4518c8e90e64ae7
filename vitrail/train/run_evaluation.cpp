// SPDX-License-Identifier: Apache-2.0
#include "vitrail/autograd/variable.h"
#include "vitrail/train/all_gather_internal.h"
#include "vitrail/train/loader_setup_internal.h"
#include "vitrail/train/resume_internal.h"
#include "vitrail/train/run_internal.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {

// Each process looks at its share of the images.
Evaluation Run::evaluate_part(const Part& part, Progress::Phase phase) {
  const Clock::time_point began = Clock::now();
  data::Loader loader = evaluation_loader(part, loader_.options());
  const auto classes = static_cast<int64_t>(data_.classes.size());
  Evaluation evaluation = evaluate(prepared_.model, loader, classes, [&](int64_t done, int64_t total) {
    if (callbacks_.progress && crew_.leads())
      callbacks_.progress(
          {.phase = phase, .epoch = at_.epoch + 1, .epochs = recipe_.epochs, .step = done, .steps = total});
    if (stop_requested()) throw StopRequested{};
  });
  evaluation = all_gather(crew_, std::move(evaluation));
  meter_.add_evaluation(seconds_since(began));
  return evaluation;
}

// The same images with the averaged weights in the model's place.
Evaluation Run::evaluate_average() {
  stepper_.average()->swap();
  struct Undo {
    optim::Ema* average;
    ~Undo() { average->swap(); }
  } const undo{stepper_.average()};
  return evaluate_part(data_.validation, Progress::Phase::validate);
}

// Figures of the weights and of their average, the best of them kept; then the next epoch begins.
void Run::finish_epoch() {
  EpochResult result{.epoch = at_.epoch + 1, .step = at_.step};
  result.train_loss = counters_.epoch.mean_loss();
  result.train_top1 = counters_.epoch.accuracy();
  const bool last = at_.epoch + 1 == recipe_.epochs;
  result.validated = data_.validation.dataset && (last || result.epoch % recipe_.validate_every == 0);
  Evaluation shown, of_average;
  if (result.validated) {
    shown = evaluate_part(data_.validation, Progress::Phase::validate);
    result.val_loss = shown.loss;
    result.val_top1 = shown.top1;
    result.val_top5 = shown.top5;
    if (stepper_.average()) {
      of_average = evaluate_average();
      result.has_ema = true;
      result.ema_loss = of_average.loss;
      result.ema_top1 = of_average.top1;
      result.ema_top5 = of_average.top5;
    }
  }
  const bool average_is_better = result.has_ema && result.ema_top1 > result.val_top1;
  const double top1 = average_is_better ? result.ema_top1 : result.val_top1;
  result.best = result.validated ? top1 > counters_.best_top1 : !data_.validation.dataset && last;
  result.seconds = seconds();
  if (crew_.leads()) log_validation(result);
  if (result.best) keep_best(result, average_is_better);
  if (crew_.leads() && stepper_.average() && (result.validated || last))
    write_weights(folder_->checkpoint("ema"), stepper_.average()->average());
  counters_.history.push_back(result);
  counters_.epoch = {};
  at_ = {at_.epoch + 1, 0, at_.step, at_.batch_images};
  if (result.validated) write_report_of(average_is_better ? of_average : shown, data_.validation, false);
  save();
  if (callbacks_.epoch && crew_.leads()) callbacks_.epoch(result);
  meter_.begin_interval(loader_.waited_seconds());
}

void Run::log_validation(const EpochResult& result) {
  auto row = [&](const char* event, double loss, double first, double fifth) {
    journal_->add({.event = event,
                   .step = at_.step,
                   .epoch = static_cast<double>(result.epoch),
                   .loss = loss,
                   .top1 = first,
                   .top5 = fifth,
                   .seconds = result.seconds});
  };
  if (result.validated) row("val", result.val_loss, result.val_top1, result.val_top5);
  if (result.has_ema) row("val_ema", result.ema_loss, result.ema_top1, result.ema_top5);
}

void Run::keep_best(const EpochResult& result, bool average_is_better) {
  const autograd::NoGrad no_grad;
  const bool average = average_is_better || (!result.validated && stepper_.average() != nullptr);
  const auto weights = average ? stepper_.average()->average() : prepared_.model.named_parameters();
  if (crew_.leads()) {
    write_weights(folder_->checkpoint("best"), weights);
    write_model(folder_->path() / "model", prepared_.config, weights);
  }
  counters_.best_top1 = average ? result.ema_top1 : result.val_top1;
  counters_.best_epoch = result.epoch;
  counters_.best_is_average = average;
}

void Run::load_best() {
  const autograd::NoGrad no_grad;
  if (crew_.leads()) {
    const std::filesystem::path path = folder_->checkpoint("best");
    const weights::Checkpoint file = weights::Checkpoint::open(path);
    std::vector<nn::NamedTensor> best;
    for (const std::string& name : file.names()) best.push_back({name, file.tensor(name)});
    copy_weights(best, prepared_.model.named_parameters(), path.string());
  }
  crew_.copy_from_leader(prepared_.model.named_parameters());
}

// The best weights on the test images, once; the report shows them, or the held-out images without a test set.
void Run::final_evaluation() {
  if (counters_.tested) return;
  load_best();
  const bool test = data_.test.dataset != nullptr;
  const Part& part = test ? data_.test : data_.validation;
  Evaluation evaluation;
  if (part.dataset) evaluation = evaluate_part(part, test ? Progress::Phase::test : Progress::Phase::validate);
  counters_.tested = true;
  if (test) {
    counters_.test_loss = evaluation.loss;
    counters_.test_top1 = evaluation.top1;
    counters_.test_top5 = evaluation.top5;
    if (journal_)
      journal_->add({.event = "test",
                     .step = at_.step,
                     .epoch = static_cast<double>(at_.epoch),
                     .loss = evaluation.loss,
                     .top1 = evaluation.top1,
                     .top5 = evaluation.top5,
                     .seconds = seconds()});
  }
  write_report_of(evaluation, part, true);
}

void Run::write_report_of(const Evaluation& evaluation, const Part& part, bool finished) const {
  if (!crew_.leads()) return;
  const Counters counters = counters_now();
  write_report(folder_->path(), {&recipe_, &prepared_.config, &data_, &counters, &evaluation, &part,
                                 prepared_.model.num_parameters(), finished, crew_.size()});
}

}  // namespace vitrail::train
