// SPDX-License-Identifier: Apache-2.0
// A second training, on all images, after the held-out ones have chosen the number of epochs.  It is a run of its own
// in the folder "retrain", from which it resumes; its weights become the model, and the folder is removed.
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {

void Run::remove_retraining() const {
  std::error_code ignored;
  if (group_.is_rank_zero()) std::filesystem::remove_all(retraining_folder(), ignored);
}

// As the run's, without images that are held out or tested.  The schedule of the learning rate ends with the epochs.
Recipe Run::recipe_of_all_images() const {
  Recipe recipe = recipe_;
  DataRecipe& data = recipe.data;
  for (std::string* unused : {&data.val, &data.val_split, &data.test, &data.test_split}) unused->clear();
  data.holdout = data.folds = data.fold = 0;
  data.retrain = false;
  recipe.patience = 0;
  recipe.explain = {};
  recipe.epochs = std::max<int64_t>(counters_.best_epoch, 1);
  recipe.schedule.warmup_epochs = std::min(recipe.schedule.warmup_epochs, static_cast<double>(recipe.epochs));
  return recipe;
}

// Throws StopRequested if it was stopped.
void Run::retrain() {
  if (!has_time_to_retrain()) return log("no time is left to train on all images: the best weights are kept");
  const Recipe recipe = recipe_of_all_images();
  const bool start = counters_.best_epoch == 0;  // no epoch was better
  counters_.retrained =
      Retraining{counters_.best_epoch, objective_->size(Split::training) + objective_->size(Split::validation)};
  const std::string images = counted(counters_.retrained->images, "image");
  log(start ? "computing the start again from all " + images + ": the saved model"
            : str("training again on all ", images, ", for ", counted(recipe.epochs, "epoch"), ": the saved model"));
  const double before = seconds();
  const TrainerOptions options{
      .folder = retraining_folder(), .resume = true, .allow_changes = true, .communicator = options_.communicator};
  TrainerCallbacks callbacks = callbacks_;
  callbacks.message = nullptr;
  std::optional<Run> run;
  {
    const WarningPause told_already;
    run.emplace(row_, recipe, options, callbacks, threads_);
  }
  if (start) return run->keep_start();
  const TrainingResult result = run->run();
  if (result.stopped) throw StopRequested{};
  counters_.seconds += std::max(0.0, result.seconds - (seconds() - before));  // the time of earlier resumptions
}

// The weights before the first step are the best ones.
void Run::keep_start() {
  begin();
  keep_best(0, {});
}

// Writes the weights of the second training as the model: the average, if the best ones were one.
void Run::keep_retrained() {
  const char* const weights = counters_.best_is_average ? "ema.safetensors" : "best.safetensors";
  load(retraining_folder() / "checkpoints" / weights);
  write_model("model", objective_->model().named_parameters());
}

}  // namespace vitrail::train
