// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/ops/precision.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/low_rank_internal.h"
#include "vitrail/train/run/resume_internal.h"
#include "vitrail/train/run/run_files_internal.h"
#include "vitrail/train/run/run_internal.h"
#include "vitrail/train/run/validation_change_internal.h"

namespace vitrail::train {

Run::Run(const ObjectiveRow& objective, const Recipe& recipe, const TrainerOptions& options,
         const TrainerCallbacks& callbacks, int threads)
    : row_(objective),
      options_(options),
      group_(options.communicator),
      recipe_(recipe),
      callbacks_(callbacks),
      threads_(threads),
      time_limit_(options.time_limit),
      solves_(objective.solves),
      folder_(group_.is_rank_zero() ? std::make_unique<RunFolder>(options.folder) : nullptr),
      state_(group_.is_rank_zero() ? find_state(objective, options) : std::nullopt),
      objective_(
          objective.make({recipe_, group_, threads, options.folder, [this](const std::string& line) { log(line); }})),
      batches_(objective_->batches()),
      steps_(ceil_div(batches_, recipe.accumulate)),
      environment_(environment_of(options, threads)) {
  if (solves_) return;
  optim::GroupOptions groups = recipe.groups;
  groups.frozen = objective_->frozen();
  groups.rate_scales = objective_->rate_scales();
  if (recipe_.lora) {
    nn::add_lora(objective_->model(), *recipe_.lora, recipe_.seed);
    const auto others = frozen_by_lora(objective_->model().named_parameters(), row_.new_layers);
    groups.frozen.insert(groups.frozen.end(), others.begin(), others.end());
  }
  update_ = std::make_unique<WeightUpdate>(recipe_, objective_->model(), groups, steps_, group_);
  if (state_) check_class_names(state_->class_names, objective_->classes(), options.folder.string());
  if (group_.is_rank_zero()) image_sets_ = objective_->image_sets();
  restore();
  if (counters_.start) objective_->start_from(*counters_.start);
  if (!group_.is_rank_zero()) return;
  begin_files();
  log_setup();
}

// The state to resume, if there is one.  Throws Error if the folder has what the run would replace.
std::optional<CheckpointState> Run::find_state(const ObjectiveRow& objective, const TrainerOptions& options) const {
  if (!solves_) return load_resumable_state(*folder_, recipe_, options, fingerprint(threads_, group_.size()));
  require_solvable(options.folder, objective.name, options.resume);
  return std::nullopt;
}

void Run::begin_files() {
  folder_->keep();
  folder_->remove_temporary_files();
  metrics_log_.emplace(folder_->path(), counters_, objective_->metrics().each);
  write_text(folder_->path() / "recipe.json", write_recipe(recipe_));
}

void Run::log(const std::string& message) const {
  if (callbacks_.message && group_.is_rank_zero()) callbacks_.message(message);
}

void Run::log_setup() const {
  for (const std::string& line : objective_->introduction()) log(line);
  if (validates() || !solves_) {
    log(validates() ? "validating on " + objective_->name(Split::validation)
                    : "no validation images: the last weights are kept");
  }
  if (recipe_.data.retrain && !solves_ && !retrains())
    log("data.retrain: no training images are held out, so there is no second training");
  if (objective_->size(Split::test) > 0) log("testing at the end on " + objective_->name(Split::test));
  if (solves_) return;
  if (recipe_.precision == "bf16" && !ops::has_bf16_gemm()) {
    log("precision bf16: this processor has no bf16 GEMM, so operands are rounded to bf16 and multiplied in fp32; fp32 "
        "is faster");
  }
  if (group_.size() > 1) log(str(group_.size(), " processes, ", position_.batch_images, " images a batch"));
  if (update_->ema() && !validates()) {
    warn("ema: the average is not used, because no validation images tell whether it is better than the last weights");
  } else if (update_->ema() && !update_->ema()->warmed_up(recipe_.epochs * steps_)) {
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
  const double now = update_->scheduled_rate(step);
  if (before && *before != now)
    warn(str("the learning rate of the next step is ", now, ", and would be ", *before, " without the changes"));
}

bool Run::goes_on() const { return position_.epoch < recipe_.epochs && !out_of_patience(); }

// Rank 0: copies the checkpoint to the model and the optimiser.
void Run::restore_from_checkpoint() {
  if (!state_) return;
  restore_tensors(*state_, objective_->model().named_parameters(), update_->optimizer(), update_->ema(),
                  folder_->checkpoint("last").string());
  position_ = state_->position;
  counters_ = Counters::from_json(state_->counters, objective_->metrics().each);
  check_progress(position_, counters_, folder_->checkpoint("last").string());
  warn_of_other_images(state_->image_sets, image_sets_);
  const std::string preprocessing = objective_->preprocessing();
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
    counters_ = Counters::from_json(group_.broadcast_text(counters_.to_json()), objective_->metrics().each);
    group_.broadcast_tensors(objective_->model().named_parameters());
    const std::vector<nn::NamedTensor> state = update_->optimizer().state();
    group_.broadcast_tensors(state);
    if (!group_.is_rank_zero()) update_->optimizer().load_state(state);
    if (update_->ema()) group_.broadcast_tensors(update_->ema()->average());
  }
  position_ = resume_position(position_, recipe_.batch_size * group_.size(), batches_, recipe_.accumulate);
  if (goes_on()) counters_.tested = false, counters_.retrained.reset();  // more epochs than before follow
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
                        objective_->classes(),
                        image_sets_,
                        objective_->preprocessing()};
  state.model = objective_->model().named_parameters();
  state.optimizer = update_->optimizer().state();
  if (update_->ema()) state.average = update_->ema()->average();
  save_checkpoint(folder_->checkpoint("last"), state);
  saved_ = Clock::now();
}

// Returns the counters with the times of this process added to those of previous resumptions.
Counters Run::current_counters() const {
  Counters counters = counters_;
  counters.seconds = seconds();
  const dist::ReducerStats stats = update_ ? update_->reducer_stats() : dist::ReducerStats{};
  counters.communication.seconds += stats.communication_seconds;
  counters.communication.overlapped += stats.overlapped_seconds;
  counters.communication.waited += stats.wait_seconds;
  return counters;
}

namespace {

// All scores of the kept weights, of a run that measures the start.
std::vector<Score> kept_scores(const Counters& counters) {
  const auto kept = std::ranges::find(counters.history, counters.best_epoch, &EpochResult::epoch);
  if (kept == counters.history.end()) return counters.start->scores;
  return (counters.best_is_average ? *kept->average : *kept->validation).scores;
}

}  // namespace

TrainingResult Run::result(bool stopped) const {
  const std::vector<Metric>& metrics = objective_->metrics().each;
  TrainingResult result{.stopped = stopped, .epoch = position_.epoch, .step = position_.step, .metrics = metrics};
  result.validation_images = objective_->size(Split::validation);
  if (counters_.best.score >= 0) {
    result.validation_images = validated_images(counters_, result.validation_images);
    result.best = Score{metrics.front(), counters_.best.score, result.validation_images};
  }
  if (!counters_.history.empty() && counters_.history.back().validation)
    result.last = counters_.history.back().validation->scores.front();
  result.best_epoch = counters_.best_epoch;
  result.retrained = counters_.retrained;
  result.baselines = counters_.baselines;
  if (counters_.start) {
    result.start = counters_.start->scores.front();
    result.start_scores = counters_.start->scores;
    result.best_scores = kept_scores(counters_);
  }
  if (const int64_t images = objective_->size(Split::test); counters_.tested && images > 0)
    result.test = tested(counters_, images);
  result.skipped_images = counters_.skipped_images;
  result.skipped_steps = counters_.skipped_steps;
  const Counters counters = current_counters();
  result.seconds = counters.seconds;
  result.processes = group_.size();
  result.communication = counters.communication;
  result.usage = objective_->usage();
  return result;
}

TrainingResult Run::run() {
  try {
    if (solves_) return solve();
    if (goes_on()) remove_retraining();
    begin();
    while (goes_on()) {
      if (!train_epoch()) return result(true);
      finish_epoch();
      keep_time_limit();
    }
    if (counters_.tested) return result(false);
    if (position_.epoch < recipe_.epochs)
      log(str("ended after epoch ", position_.epoch, ": no better validation loss in ",
              counted(recipe_.patience, "epoch")));
    if (retrains()) retrain();
    const autograd::NoGrad no_grad;
    // The final evaluation loads the best weights into the model; the checkpoint needs the last ones.
    const std::vector<nn::NamedTensor> parameters = objective_->model().named_parameters();
    std::vector<nn::NamedTensor> last;
    for (const nn::NamedTensor& tensor : parameters) last.push_back({tensor.name, tensor.tensor.clone()});
    write_model("last", last);
    final_evaluation();
    copy_weights(last, parameters, "weights");
    save();
    remove_retraining();
  } catch (const StopRequested&) {
    if (solves_) return {.stopped = true};
    if (goes_on()) save();  // the position is the end of the epoch, before its validation
    return result(true);
  }
  return result(false);
}

}  // namespace vitrail::train
