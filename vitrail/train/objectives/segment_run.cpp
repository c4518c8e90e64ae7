// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segment_run.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/data/loader/ordered_prefetch.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/train/objectives/segment_run_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
namespace {

std::filesystem::path cache_of(const Recipe& recipe, const RunFolder& folder) {
  const std::string& shared = recipe.segment->cache;
  return shared.empty() ? folder.path() / "embeddings" : std::filesystem::path(shared);
}

}  // namespace

SegmentRun::SegmentRun(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks,
                       int threads)
    : group_(single_process(options.communicator, "segment")),
      recipe_(recipe),
      callbacks_(callbacks),
      threads_(threads),
      folder_(options.folder),
      state_(load_resumable_state(folder_, recipe, options, fingerprint(threads, 1))),
      data_(open_segment_data(recipe.data)),
      image_sets_(image_sets(data_)),
      prepared_(prepare_sam(recipe)),
      samples_(data_.train, sam::input_frame(prepared_.model.config()), recipe.data),
      draw_(recipe, samples_, prepared_.model.config().encoder.image_size(), prepared_.model.config().mask_size()),
      batches_(ceil_div(static_cast<int64_t>(data_.samples.size()), recipe.batch_size)),
      steps_(ceil_div(batches_, recipe.accumulate)),
      step_(recipe, prepared_.model, cache_of(recipe, folder_)),
      update_(recipe, prepared_.model, prepared_.frozen, steps_, group_) {
  restore();
  folder_.keep();
  folder_.remove_temporary_files();
  environment_ = environment_of(options, threads);
  metrics_log_.emplace(folder_.path(), counters_, segmentation_metric_names());
  write_text(folder_.path() / "recipe.json", write_recipe(recipe_));
  log_setup();
}

void SegmentRun::log_setup() const {
  const models::SamEncoderConfig& encoder = prepared_.model.config().encoder;
  log(str("Segment Anything at ", encoder.image_size(), "×", encoder.image_size(), ", encoder ", encoder.dim,
          " wide with ", encoder.blocks.size(), " blocks, ", prepared_.model.num_parameters(), " parameters"));
  for (const std::string& note : prepared_.notes) log("from " + recipe_.model.init + ": " + note);
  log("training on " + data_.train_name);
  log(data_.validation ? "validating on " + data_.validation_name : "no validation images: the last weights are kept");
  if (data_.test) log("testing at the end on " + data_.test_name);
  for (const std::string& note : metrics_log_->notes()) log(note);
  if (state_) log(str("resumed at epoch ", position_.epoch + 1, ", step ", position_.step));
}

bool SegmentRun::goes_on() const { return position_.epoch < recipe_.epochs && !out_of_patience(); }

// The sides of the input are those of the weights.
std::string SegmentRun::preprocessing() const {
  const int64_t side = prepared_.model.config().encoder.image_size();
  return preprocessing_text({.input_size = std::array{side, side}}, recipe_.data.exif);
}

void SegmentRun::restore() {
  const autograd::NoGrad no_grad;
  if (state_) {
    restore_tensors(*state_, prepared_.model.named_parameters(), update_.optimizer(), update_.ema(),
                    folder_.checkpoint("last").string());
    position_ = state_->position;
    counters_ = Counters::from_json(state_->counters);
    check_progress(position_, counters_, folder_.checkpoint("last").string());
    warn_of_other_images(state_->image_sets, image_sets_);
    if (goes_on()) {
      forget_best_of_other_validation(*state_, image_sets_, preprocessing(), counters_);
    } else if (!counters_.tested) {
      check_preprocessing_of_best(*state_, preprocessing(), folder_.path().string());
    }
  }
  position_ = resume_position(position_, recipe_.batch_size, batches_, recipe_.accumulate);
  if (goes_on()) counters_.tested = false;  // more epochs follow
  if (counters_.tested) end_seconds_ = counters_.seconds;
  saved_step_ = position_.step;
}

void SegmentRun::save() {
  const autograd::NoGrad no_grad;
  saved_step_ = position_.step;
  metrics_log_->flush(counters_);
  CheckpointState state{
      position_, write_recipe(recipe_), current_counters().to_json(), fingerprint(threads_, 1), {}, {}, {}};
  state.image_sets = image_sets_;
  state.preprocessing = preprocessing();
  state.model = prepared_.model.named_parameters();
  state.optimizer = update_.optimizer().state();
  if (update_.ema()) state.average = update_.ema()->average();
  save_checkpoint(folder_.checkpoint("last"), state);
  saved_ = Clock::now();
}

Counters SegmentRun::current_counters() const {
  Counters counters = counters_;
  counters.seconds = seconds();
  return counters;
}

TrainingResult SegmentRun::result(bool stopped) const {
  TrainingResult result{.stopped = stopped, .epoch = position_.epoch, .step = position_.step};
  result.segmentation = true;
  if (counters_.best.top1 >= 0) result.best_top1 = counters_.best.top1;
  if (!counters_.history.empty() && counters_.history.back().validated) {
    result.last_top1 = counters_.history.back().val_top1;
  }
  const int64_t validation_images = data_.validation ? data_.validation->size() : 0;
  result.validation_images = result.best_top1 ? validated_images(counters_, validation_images) : validation_images;
  result.best_epoch = counters_.best_epoch;
  result.tested = counters_.tested && data_.test;
  result.test_images = tested_images(counters_, data_.test ? data_.test->size() : 0);
  result.test_loss = counters_.test_loss;
  result.test_top1 = counters_.test_top1;
  result.test_top5 = counters_.test_top5;
  result.skipped_images = counters_.skipped_images;
  result.skipped_steps = counters_.skipped_steps;
  result.seconds = seconds();
  return result;
}

// Trains from the current position to the end of the epoch.  Returns false if a stop was requested.
bool SegmentRun::train_epoch() {
  const std::vector<int64_t> order = data::epoch_order(data_.samples, true, recipe_.seed, position_.epoch);
  const int64_t first = position_.step_in_epoch * recipe_.batch_size, size = static_cast<int64_t>(order.size());
  const int workers = recipe_.data.workers > 0 ? static_cast<int>(recipe_.data.workers) : std::max(1, threads_ / 2);
  data::OrderedPrefetch<DrawnSample> samples(
      static_cast<size_t>(size - std::min(size, first)),
      [&, epoch = position_.epoch](size_t i) {
        const int64_t at = first + static_cast<int64_t>(i);
        return draw_.draw(order[static_cast<size_t>(at)], epoch, at);
      },
      {.threads = workers, .in_flight = static_cast<size_t>(recipe_.data.in_flight * recipe_.batch_size)});
  while (position_.step_in_epoch < batches_) {
    const Clock::time_point start = Clock::now();
    const int64_t count = std::min(recipe_.batch_size, size - position_.step_in_epoch * recipe_.batch_size);
    std::vector<DrawnSample> batch;
    for (int64_t i = 0; i < count; ++i) batch.push_back(std::move(*samples.next()));
    waited_ += seconds_since(start);
    if (!train_batch(std::move(batch))) return false;
    report_progress();
  }
  return true;
}

// Returns false if a stop was requested.
bool SegmentRun::train_batch(std::vector<DrawnSample> batch) {
  // The step accumulates the batches [first, first + count) of the epoch.
  const int64_t first = position_.step_in_epoch / recipe_.accumulate * recipe_.accumulate;
  const int64_t count = std::min(recipe_.accumulate, batches_ - first);
  const SegmentBatchResult done = step_.accumulate(std::move(batch), 1 / static_cast<double>(count));
  throughput_.add_batch(done.images);
  if (!std::isfinite(done.loss)) {
    update_.reject(str("the loss is ", done.loss));
  } else {
    for (RunningSums* sums : {&counters_.epoch, &counters_.interval}) {
      sums->loss += done.loss * static_cast<double>(done.images);
      sums->images += done.images;
    }
  }
  ++position_.step_in_epoch;
  if (position_.step_in_epoch - first < count) return true;
  const int64_t scheduled = position_.epoch * steps_ + first / recipe_.accumulate;
  return end_step(update_.apply(position_.step++, scheduled));
}

// Counts a step and saves a checkpoint if it is due.  Returns false if a stop was requested.
bool SegmentRun::end_step(const StepResult& step) {
  // After a resume, samples_ has counted only what was met again.
  counters_.skipped_images = std::max(counters_.skipped_images, samples_.unreadable());
  count_step(step, position_, counters_);
  if (row_is_due(recipe_, position_, length())) log_interval(step);
  const bool stop = stop_requested();
  if (stop || checkpoint_is_due(recipe_, position_, length(), saved_step_, seconds_since(saved_))) save();
  return !stop;
}

void SegmentRun::log_interval(const StepResult& step) {
  const RunningSums& sums = counters_.interval;
  MetricsRow row{.event = "train", .step = position_.step};
  row.epoch = static_cast<double>(position_.epoch) +
              static_cast<double>(position_.step_in_epoch) / static_cast<double>(batches_);
  row.loss = sums.mean_loss();
  row.learning_rate = step.learning_rate;
  if (sums.steps > 0) row.gradient_norm = sums.gradient_norm / static_cast<double>(sums.steps);
  throughput_.fill(row, sums.images, waited_);
  row.seconds = seconds();
  metrics_log_->add(row);
  counters_.interval = {};
  throughput_.begin_interval(waited_);
}

void SegmentRun::report_progress() const {
  if (!callbacks_.progress) return;
  Progress progress{
      .epoch = position_.epoch + 1, .epochs = recipe_.epochs, .step = position_.step_in_epoch, .steps = batches_};
  progress.loss = counters_.epoch.mean_loss();
  progress.accuracy = std::nan("");
  throughput_.fill(progress, (recipe_.epochs - position_.epoch) * batches_ - position_.step_in_epoch, waited_);
  callbacks_.progress(progress);
}

TrainingResult SegmentRun::run() {
  try {
    while (goes_on()) {
      if (!train_epoch()) return result(true);
      finish_epoch();
    }
    if (counters_.tested) return result(false);
    if (position_.epoch < recipe_.epochs) {
      log(str("ended after epoch ", position_.epoch, ": no better validation loss in ",
              counted(recipe_.patience, "epoch")));
    }
    final_evaluation();
  } catch (const StopRequested&) {
    if (goes_on()) save();  // the position is the end of the epoch, before its validation
    return result(true);
  }
  return result(false);
}

TrainingResult train_segment(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  const int threads = options.threads > 0 ? options.threads : available_threads();
  const ComputeTeam team(threads);
  return SegmentRun(recipe, options, callbacks, threads).run();
}

}  // namespace vitrail::train
