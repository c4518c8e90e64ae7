// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/train/loader_setup_internal.h"
#include "vitrail/train/resume_internal.h"
#include "vitrail/train/run_internal.h"

namespace vitrail::train {

Run::Run(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks, int threads)
    : crew_(options.communicator),
      recipe_(recipe),
      callbacks_(callbacks),
      threads_(threads),
      folder_(crew_.leads() ? std::make_unique<const RunFolder>(options.folder) : nullptr),
      state_(crew_.leads() ? resumable(*folder_, recipe, options, fingerprint(threads, crew_.size())) : std::nullopt),
      data_(open_data(recipe.data, input_channels(recipe.model))),
      prepared_(prepare_model(recipe.model, data_.classes, recipe.seed)),
      transform_(transform()),
      loader_(data_.train.dataset,
              training_options(recipe, data_, transform_, prepared_.config.vit.in_chans, threads, crew_)),
      batches_(loader_.steps_per_epoch()),
      steps_((batches_ + recipe.accumulate - 1) / recipe.accumulate),
      stepper_(recipe_, prepared_.model, steps_, teacher(), crew_) {
  restore();
  if (!crew_.leads()) return;
  folder_->remove_leftovers();
  journal_.emplace(folder_->path(), counters_);
  write_text(folder_->path() / "recipe.json", write_recipe(recipe_));
  introduce();
}

image::EvalTransform Run::transform() {
  prepared_.config.preprocessing = preprocessing_of(recipe_.data, prepared_.config);
  return infer::transform_of(prepared_.config.preprocessing, "data");
}

std::unique_ptr<Teacher> Run::teacher() const {
  if (!recipe_.loss.distillation) return nullptr;
  auto teacher = std::make_unique<Teacher>(recipe_.loss.distillation->teacher, transform_, data_.classes,
                                           kernels::precision_from_name(recipe_.precision));
  // An image comes to another of several processes in each epoch, and one writes to the folder: they ask every time.
  if (recipe_.loss.distillation->views > 0 && crew_.size() == 1) {
    const std::string& shared = recipe_.loss.distillation->cache;
    teacher->remember(shared.empty() ? folder_->path() / "checkpoints" : std::filesystem::path(expand_path(shared)),
                      recipe_);
  }
  return teacher;
}

void Run::say(const std::string& message) const {
  if (callbacks_.message) callbacks_.message(message);
}

void Run::introduce() const {
  say(str(prepared_.config.architecture, ", ", prepared_.model.num_parameters(), " parameters, ", data_.classes.size(),
          " classes"));
  for (const std::string& note : prepared_.notes) say("from " + recipe_.model.init + ": " + note);
  say("training on " + data_.train.name);
  say(data_.validation.dataset ? "the best weights are chosen on " + data_.validation.name
                               : "nothing is held out: the last weights are kept");
  if (data_.test.dataset) say("read once, at the end: " + data_.test.name);
  if (crew_.size() > 1) say(str(crew_.size(), " processes, ", at_.batch_images, " images a batch"));
  if (state_) say(str("resumed at epoch ", at_.epoch + 1, ", step ", at_.step));
}

void Run::restore_leader() {
  if (!state_) return;
  const std::string where = folder_->checkpoint("last").string();
  copy_weights(state_->model, prepared_.model.named_parameters(), where);
  stepper_.optimizer().load_state(state_->optimizer);
  if (stepper_.average() && !state_->average.empty()) stepper_.average()->load(state_->average);
  at_ = state_->position;
  counters_ = Counters::from_json(state_->counters);
  state_->model.clear();  // gives the file's pages back
  state_->optimizer.clear();
  state_->average.clear();
}

// The leader reads the folder, which other machines need not see; all go on with what it has.
void Run::restore() {
  const autograd::NoGrad no_grad;
  restore_leader();
  if (crew_.size() > 1) {
    crew_.communicator()->broadcast(&at_, sizeof at_, 0);
    counters_ = Counters::from_json(crew_.tell(counters_.to_json()));
    crew_.copy_from_leader(prepared_.model.named_parameters());
    const std::vector<nn::NamedTensor> state = stepper_.optimizer().state();
    crew_.copy_from_leader(state);
    if (!crew_.leads()) stepper_.optimizer().load_state(state);
    if (stepper_.average()) crew_.copy_from_leader(stepper_.average()->average());
  }
  at_ = resumed_at(at_, recipe_.batch_size * crew_.size(), batches_, recipe_.accumulate);
  saved_step_ = at_.step;
}

void Run::save() {
  const autograd::NoGrad no_grad;
  saved_ = Clock::now();
  saved_step_ = at_.step;
  if (!crew_.leads()) return;
  journal_->flush(counters_);
  CheckpointState state{
      at_, write_recipe(recipe_), counters_now().to_json(), fingerprint(threads_, crew_.size()), {}, {}, {}};
  state.model = prepared_.model.named_parameters();
  state.optimizer = stepper_.optimizer().state();
  if (stepper_.average()) state.average = stepper_.average()->average();
  save_checkpoint(folder_->checkpoint("last"), state);
  saved_ = Clock::now();
}

// With what this process has added to sums that go over all resumptions.
Counters Run::counters_now() const {
  Counters counters = counters_;
  counters.seconds = seconds();
  const dist::ReducerTimes times = stepper_.exchange_times();
  counters.exchange.seconds += times.communication;
  counters.exchange.overlapped += times.overlapped;
  counters.exchange.waited += times.waited;
  return counters;
}

TrainingResult Run::result(bool stopped) const {
  TrainingResult result{.stopped = stopped, .epoch = at_.epoch, .step = at_.step};
  result.best_top1 = std::max(0.0, counters_.best_top1);
  result.best_epoch = counters_.best_epoch;
  result.tested = counters_.tested && data_.test.dataset;
  result.test_loss = counters_.test_loss;
  result.test_top1 = counters_.test_top1;
  result.test_top5 = counters_.test_top5;
  result.skipped_images = counters_.skipped_images;
  result.skipped_steps = counters_.skipped_steps;
  const Counters counters = counters_now();
  result.seconds = counters.seconds;
  result.processes = crew_.size();
  result.exchange = counters.exchange;
  return result;
}

TrainingResult Run::run() {
  try {
    while (at_.epoch < recipe_.epochs) {
      if (!train_epoch()) return result(true);
      finish_epoch();
    }
    if (counters_.tested) return result(false);
    const autograd::NoGrad no_grad;
    // The weights under training come back after the best ones have stood in their place.
    const std::vector<nn::NamedTensor> live = prepared_.model.named_parameters();
    std::vector<nn::NamedTensor> kept;
    for (const nn::NamedTensor& tensor : live) kept.push_back({tensor.name, tensor.tensor.clone()});
    final_evaluation();
    copy_weights(kept, live, "weights");
    save();
  } catch (const StopRequested&) {
    if (at_.epoch < recipe_.epochs) save();  // at the end of the epoch, before its validation
    return result(true);
  }
  return result(false);
}

}  // namespace vitrail::train
