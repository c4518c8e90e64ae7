// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/objectives/class_weights_internal.h"
#include "vitrail/train/objectives/multi_label_internal.h"
#include "vitrail/train/run/dataset_identity_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/loader_setup_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {
Run::Run(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads)
    : group_(options.communicator),
      recipe_(recipe),
      callbacks_(callbacks),
      threads_(threads),
      time_limit_(options.time_limit),
      folder_(group_.is_rank_zero() ? std::make_unique<RunFolder>(options.folder) : nullptr),
      state_(group_.is_rank_zero()
                 ? load_resumable_state(*folder_, recipe, options, fingerprint(threads, group_.size()))
                 : std::nullopt),
      data_(open_checked_data()),
      prepared_(prepare_model(recipe.model, data_.classes, recipe.seed, data_.multi_label)),
      transform_(set_preprocessing()),
      loader_(checked_train_set().dataset,
              training_options(recipe, data_, transform_, prepared_.config.vit.in_chans, threads, group_)),
      batches_(loader_.steps_per_epoch()),
      steps_(ceil_div(batches_, recipe.accumulate)),
      training_step_(recipe_, prepared_.model, steps_, make_teacher(), group_, class_weights(recipe.loss, data_)) {
  if (state_) check_class_names(state_->class_names, data_.classes, options.folder.string());
  if (group_.is_rank_zero()) image_sets_ = image_sets(data_);
  restore();
  if (!group_.is_rank_zero()) return;
  folder_->keep();
  folder_->remove_temporary_files();
  environment_ = environment_of(options, threads);
  metrics_log_.emplace(folder_->path(), counters_, metric_names(data_.multi_label));
  write_text(folder_->path() / "recipe.json", write_recipe(recipe_));
  log_setup();
}

RunData Run::open_checked_data() const {
  RunData data = open_data(recipe_.data, architecture_of(recipe_.model).in_chans);
  if (data.multi_label) check_multi_label(recipe_, group_.size());
  return data;
}

// Sets the model's preprocessing and returns it as a transform.
image::EvalTransform Run::set_preprocessing() {
  prepared_.config.preprocessing = preprocessing_of(recipe_.data, prepared_.config);
  return infer::transform_of(prepared_.config.preprocessing, "data");
}

// The loader's own error would name a field that a recipe does not have.
const Subset& Run::checked_train_set() const {
  if (recipe_.batch_size > data_.train.size())
    throw Error("batch_size", str("at most the ", data_.train.size(), " training images"), str(recipe_.batch_size));
  return data_.train;
}

std::unique_ptr<Teacher> Run::make_teacher() const {
  if (!recipe_.loss.distillation) return nullptr;
  auto teacher = std::make_unique<Teacher>(recipe_.loss.distillation->teacher, transform_, data_.classes,
                                           kernels::precision_from_name(recipe_.precision));
  // Several processes do not cache logits: an image moves between them from epoch to epoch, and only rank 0 writes
  // files.
  if (recipe_.loss.distillation->views > 0 && group_.size() == 1) {
    const std::string& shared = recipe_.loss.distillation->cache;
    teacher->use_cache(shared.empty() ? folder_->path() / "checkpoints" : std::filesystem::path(shared), recipe_,
                       dataset_identity(data_.train.dataset));
  }
  return teacher;
}

void Run::log(const std::string& message) const {
  if (callbacks_.message) callbacks_.message(message);
}

void Run::log_setup() const {
  log(str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(), " parameters, ", data_.classes.size(),
          " classes"));
  for (const std::string& note : prepared_.notes) log("from " + recipe_.model.init + ": " + note);
  log("training on " + data_.train.name);
  log(class_counts_text(data_));
  log(data_.validation.dataset ? "validating on " + data_.validation.name
                               : "no validation images: the last weights are kept");
  if (data_.test.dataset) log("testing at the end on " + data_.test.name);
  if (recipe_.precision == "bf16" && !ops::has_bf16_gemm()) {
    log("precision bf16: this processor has no bf16 GEMM, so operands are rounded to bf16 and multiplied in fp32; fp32 "
        "is faster");
  }
  if (group_.size() > 1) log(str(group_.size(), " processes, ", position_.batch_images, " images a batch"));
  if (training_step_.ema() && !data_.validation.dataset) {
    warn("ema: the average is not used, because no validation images tell whether it is better than the last weights");
  } else if (training_step_.ema() && !training_step_.ema()->warmed_up(recipe_.epochs * steps_)) {
    warn(str("ema: the average is not used, because after all ", recipe_.epochs * steps_,
             " steps it is still mostly the ",
             "weights of the first step; expected a smaller decay or \"warmup\": true"));
  }
  if (state_) log_resumption();
}

// A changed recipe may give another learning rate at the same step.
void Run::log_resumption() const {
  for (const std::string& note : metrics_log_->notes()) log(note);
  log(str("resumed at epoch ", position_.epoch + 1, ", step ", position_.step));
  if (position_.epoch >= recipe_.epochs) return;
  const int64_t step = position_.epoch * steps_ + position_.step_in_epoch / recipe_.accumulate;
  const std::optional<double> before = scheduled_rate(state_->recipe, steps_, step);
  const double now = training_step_.scheduled_rate(step);
  if (before && *before != now)
    warn(str("the learning rate of the next step is ", now, ", and would be ", *before, " without the changes"));
}

bool Run::goes_on() const { return position_.epoch < recipe_.epochs && !out_of_patience(); }

// Rank 0: copies the checkpoint to the model and the optimiser.
void Run::restore_from_checkpoint() {
  if (!state_) return;
  restore_tensors(*state_, prepared_.model.named_parameters(), training_step_.optimizer(), training_step_.ema(),
                  folder_->checkpoint("last").string());
  position_ = state_->position;
  counters_ = Counters::from_json(state_->counters);
  check_progress(position_, counters_, folder_->checkpoint("last").string());
  warn_of_other_images(state_->image_sets, image_sets_);
  const std::string preprocessing = preprocessing_text(prepared_.config.preprocessing, recipe_.data.exif);
  if (goes_on()) {
    forget_best_of_other_validation(*state_, image_sets_, preprocessing, counters_);
  } else if (!counters_.tested) {
    check_preprocessing_of_best(*state_, preprocessing, folder_->path().string());
  }
}

// Rank 0 reads the checkpoint and broadcasts it, because other machines may not have access to the folder.
void Run::restore() {
  const autograd::NoGrad no_grad;
  restore_from_checkpoint();
  if (group_.size() > 1) {
    group_.communicator()->broadcast(&position_, sizeof position_, 0);
    counters_ = Counters::from_json(group_.broadcast_text(counters_.to_json()));
    group_.broadcast_tensors(prepared_.model.named_parameters());
    const std::vector<nn::NamedTensor> state = training_step_.optimizer().state();
    group_.broadcast_tensors(state);
    if (!group_.is_rank_zero()) training_step_.optimizer().load_state(state);
    if (training_step_.ema()) group_.broadcast_tensors(training_step_.ema()->average());
  }
  position_ = resume_position(position_, recipe_.batch_size * group_.size(), batches_, recipe_.accumulate);
  if (goes_on()) counters_.tested = false;  // more epochs than before follow
  if (counters_.tested) end_seconds_ = counters_.seconds;
  saved_step_ = position_.step;
}

void Run::save() {
  const autograd::NoGrad no_grad;
  saved_ = Clock::now();
  saved_step_ = position_.step;
  if (!group_.is_rank_zero()) return;
  metrics_log_->flush(counters_);
  CheckpointState state{position_,
                        write_recipe(recipe_),
                        current_counters().to_json(),
                        fingerprint(threads_, group_.size()),
                        {},
                        {},
                        {},
                        data_.classes,
                        image_sets_,
                        preprocessing_text(prepared_.config.preprocessing, recipe_.data.exif)};
  state.model = prepared_.model.named_parameters();
  state.optimizer = training_step_.optimizer().state();
  if (training_step_.ema()) state.average = training_step_.ema()->average();
  save_checkpoint(folder_->checkpoint("last"), state);
  saved_ = Clock::now();
}

// Returns the counters with the times of this process added to those of previous resumptions.
Counters Run::current_counters() const {
  Counters counters = counters_;
  counters.seconds = seconds();
  const dist::ReducerStats stats = training_step_.reducer_stats();
  counters.communication.seconds += stats.communication_seconds;
  counters.communication.overlapped += stats.overlapped_seconds;
  counters.communication.waited += stats.wait_seconds;
  return counters;
}

TrainingResult Run::result(bool stopped) const {
  TrainingResult result{.stopped = stopped, .epoch = position_.epoch, .step = position_.step};
  if (counters_.best.top1 >= 0) result.best_top1 = counters_.best.top1;
  result.multi_label = data_.multi_label;
  if (!counters_.history.empty() && counters_.history.back().validated)
    result.last_top1 = counters_.history.back().val_top1;
  result.validation_images =
      result.best_top1 ? validated_images(counters_, data_.validation.size()) : data_.validation.size();
  result.best_epoch = counters_.best_epoch;
  result.tested = counters_.tested && data_.test.dataset;
  result.test_images = tested_images(counters_, data_.test.size());
  result.test_loss = counters_.test_loss;
  result.test_top1 = counters_.test_top1;
  result.test_top5 = counters_.test_top5;
  result.skipped_images = counters_.skipped_images;
  result.skipped_steps = counters_.skipped_steps;
  const Counters counters = current_counters();
  result.seconds = counters.seconds;
  result.processes = group_.size();
  result.communication = counters.communication;
  return result;
}

TrainingResult Run::run() {
  try {
    while (goes_on()) {
      if (!train_epoch()) return result(true);
      finish_epoch();
      keep_time_limit();
    }
    if (counters_.tested) return result(false);
    const autograd::NoGrad no_grad;
    // The final evaluation loads the best weights into the model; the checkpoint needs the last ones.
    const std::vector<nn::NamedTensor> parameters = prepared_.model.named_parameters();
    std::vector<nn::NamedTensor> last;
    for (const nn::NamedTensor& tensor : parameters) last.push_back({tensor.name, tensor.tensor.clone()});
    if (group_.is_rank_zero()) write_model(folder_->path() / "last", prepared_.config, last);
    if (position_.epoch < recipe_.epochs)
      log(str("ended after epoch ", position_.epoch, ": no better validation loss in ",
              counted(recipe_.patience, "epoch")));
    final_evaluation();
    copy_weights(last, parameters, "weights");
    save();
  } catch (const StopRequested&) {
    if (goes_on()) save();  // the position is the end of the epoch, before its validation
    return result(true);
  }
  return result(false);
}

}  // namespace vitrail::train
