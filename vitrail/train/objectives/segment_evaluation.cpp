// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "vitrail/autograd/variable.h"
#include "vitrail/nn/copied_params.h"
#include "vitrail/train/objectives/segment_run_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::train {
namespace {

Score score_of(const sam::MaskEvaluation& evaluation) {
  return {evaluation.click_best, 1 - (evaluation.click_best + evaluation.three_clicks + evaluation.box) / 3};
}

}  // namespace

// The model as it is, compiled for inference.
sam::Predictor SegmentRun::predictor() const {
  nn::CopiedParams params(prepared_.model);
  return sam::Predictor(models::Sam(prepared_.model.config(), ParamSource(params)), {.threads = threads_});
}

sam::MaskEvaluation SegmentRun::evaluate(const sam::InstanceDataset& dataset, Progress::Phase phase) {
  const autograd::NoGrad no_grad;
  const Clock::time_point start = Clock::now();
  sam::MaskEvaluationOptions options{.exif = recipe_.data.exif};
  if (recipe_.data.unreadable == data::Unreadable::replace) {
    options.unreadable = [this](const std::string& message) { log("skipped: " + message); };
  }
  options.progress = [&](int64_t done, int64_t total) {
    if (callbacks_.progress) {
      Progress progress{
          .phase = phase, .epoch = position_.current_epoch(), .epochs = recipe_.epochs, .step = done, .steps = total};
      fill(progress, start, total);
      callbacks_.progress(progress);
    }
    if (stop_requested()) throw StopRequested{};
  };
  const sam::MaskEvaluation result = sam::evaluate_masks(predictor(), dataset, options);
  throughput_.add_evaluation(seconds_since(start));
  return result;
}

// Evaluates the weights and the EMA weights on the validation images.
void SegmentRun::validate(EpochResult& result) {
  const sam::MaskEvaluation weights = evaluate(*data_.validation, Progress::Phase::validate);
  result.val_images = weights.images;
  result.val_loss = score_of(weights).loss;
  result.val_top1 = weights.click_best;
  result.val_top5 = weights.box;
  if (!update_.ema()) return;
  update_.ema()->swap();
  struct SwapBack {
    optim::Ema* ema;
    ~SwapBack() { ema->swap(); }
  } const swap_back{update_.ema()};
  const sam::MaskEvaluation average = evaluate(*data_.validation, Progress::Phase::validate);
  result.has_ema = true;
  result.ema_loss = score_of(average).loss;
  result.ema_top1 = average.click_best;
  result.ema_top5 = average.box;
}

// Validates, keeps the weights if they are the best so far, and saves.  Of equally good weights the later are kept.
void SegmentRun::finish_epoch() {
  EpochResult result{.epoch = position_.epoch + 1, .step = position_.step};
  result.segmentation = true;
  result.train_loss = counters_.epoch.mean_loss();
  const bool last = position_.epoch + 1 == recipe_.epochs;
  result.validated = data_.validation && (last || result.epoch % recipe_.validate_every == 0);
  if (result.validated) validate(result);
  const Candidate candidate = result.validated ? candidate_of(result, update_.ema(), position_.step) : Candidate{};
  result.best = result.validated ? !better(counters_.best, candidate.score) : !data_.validation && last;
  result.seconds = seconds();
  log_validation(result, *metrics_log_);
  if (result.best) keep_best(result.epoch, candidate);
  counters_.history.push_back(result);
  counters_.epoch = {};
  position_ = {position_.epoch + 1, 0, position_.step, position_.batch_images};
  if (result.validated) update_report(false);
  save();
  if (callbacks_.epoch) callbacks_.epoch(result);
  throughput_.begin_interval(waited_);
}

void SegmentRun::write_model_folder(const char* name, const std::vector<nn::NamedTensor>& weights) const {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const nn::NamedTensor& tensor : weights) tensors.emplace_back(tensor.name, tensor.tensor);
  weights::write_hub_folder(folder_.path() / name, models::write_sam_config(prepared_.model.config()), tensors);
}

bool SegmentRun::out_of_patience() const {
  return data_.validation && train::out_of_patience(recipe_, position_, counters_);
}

void SegmentRun::keep_best(int64_t epoch, const Candidate& candidate) {
  const autograd::NoGrad no_grad;
  const auto weights = candidate.is_average ? update_.ema()->average() : prepared_.model.named_parameters();
  write_weights(folder_.checkpoint("best"), weights);
  write_model_folder("model", weights);
  counters_.best = candidate.score;
  counters_.best_epoch = epoch;
  counters_.best_is_average = candidate.is_average;
}

// Evaluates the best weights on the test images, and writes the report of the finished run.
void SegmentRun::final_evaluation() {
  const autograd::NoGrad no_grad;
  // The best weights are loaded into the model; the checkpoint needs the last ones.
  const std::vector<nn::NamedTensor> parameters = prepared_.model.named_parameters();
  std::vector<nn::NamedTensor> last;
  for (const nn::NamedTensor& tensor : parameters) last.push_back({tensor.name, tensor.tensor.clone()});
  write_model_folder("last", last);
  load_weights(folder_.checkpoint("best"), parameters);
  std::optional<sam::MaskEvaluation> evaluated;
  if (data_.test) evaluated = evaluate(*data_.test, Progress::Phase::test);
  end_seconds_ = seconds();
  if (evaluated) {
    const sam::MaskEvaluation& test = *evaluated;
    counters_.test_loss = score_of(test).loss;
    counters_.test_top1 = test.click_best;
    counters_.test_top5 = test.box;
    counters_.test_images = test.images;
    metrics_log_->add({.event = "test",
                       .step = position_.step,
                       .epoch = static_cast<double>(position_.epoch),
                       .loss = counters_.test_loss,
                       .top1 = test.click_best,
                       .top5 = test.box,
                       .seconds = seconds()});
  }
  counters_.tested = true;
  update_report(true);
  copy_weights(last, parameters, "weights");
  save();
}

}  // namespace vitrail::train
