// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {

// Epochs take what the slower of the last one and of the mean took, because the load of the machine changes.
double Run::epoch_seconds() const {
  const std::vector<EpochResult>& history = counters_.history;
  const double before = history.size() > 1 ? history[history.size() - 2].seconds : 0;
  return std::max(history.back().seconds - before, seconds() / static_cast<double>(position_.epoch));
}

// The end evaluates the kept weights, as an epoch does.
double Run::end_seconds() const {
  const int64_t test = objective_->size(Split::test), evaluated = test > 0 ? test : objective_->size(Split::validation);
  constexpr double kForwardShare = 1 / 3.0;  // a training step has a backward pass too
  return epoch_seconds() * kForwardShare * static_cast<double>(evaluated) /
         static_cast<double>(objective_->size(Split::training));
}

// The time of an epoch on all images, in epochs without the held-out ones; 0 if there will be none.
double Run::retraining_share() const {
  if (!retrains()) return 0;
  return 1 + static_cast<double>(objective_->size(Split::validation)) /
                 static_cast<double>(objective_->size(Split::training));
}

// The number of further epochs for which there is time.  Any of them may be the best, so that as many on all images
// follow.
int64_t Run::epochs_that_fit() const {
  const double all = (time_limit_ - seconds() - end_seconds()) / epoch_seconds(), share = retraining_share();
  const auto fit =
      static_cast<int64_t>(std::max(0.0, (all - share * static_cast<double>(position_.epoch)) / (1 + share)));
  return counters_.history.back().validation ? fit : std::max<int64_t>(fit, 1);  // the last epoch keeps its weights
}

// The clock of rank 0 decides.
bool Run::has_time_to_retrain() const {
  const double needed = epoch_seconds() * retraining_share() * static_cast<double>(counters_.best_epoch);
  int64_t fits = time_limit_ <= 0 || seconds() + needed + end_seconds() <= time_limit_ ? 1 : 0;
  if (group_.size() > 1) group_.communicator()->broadcast(&fits, sizeof fits, 0);
  return fits != 0;
}

// Reduces the recipe's epochs to what the time limit allows.  The clock of rank 0 decides.
void Run::keep_time_limit() {
  if (time_limit_ <= 0 || position_.epoch >= recipe_.epochs) return;
  int64_t epochs = std::min(recipe_.epochs, position_.epoch + epochs_that_fit());
  if (group_.size() > 1) group_.communicator()->broadcast(&epochs, sizeof epochs, 0);
  if (epochs == recipe_.epochs) return;
  if (group_.is_rank_zero()) {
    log(str("epochs take longer than expected: ", epochs, " instead of ", recipe_.epochs, " for the time limit"));
  }
  recipe_.epochs = epochs;
  recipe_.schedule.warmup_epochs = std::min(recipe_.schedule.warmup_epochs, static_cast<double>(epochs));
  update_->update_schedule(steps_);
  if (group_.is_rank_zero()) write_text(folder_->path() / "recipe.json", write_recipe(recipe_));
  save();
}

}  // namespace vitrail::train
