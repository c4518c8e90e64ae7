// SPDX-License-Identifier: Apache-2.0
#pragma once
// The backward passes of a step and the update of the weights: optimiser, schedule, EMA and all-reduce of gradients.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/gradient_all_reduce_internal.h"

namespace vitrail::train {

struct StepResult {
  double learning_rate = 0, gradient_norm = 0;
  bool updated = true;  // false: the step was skipped, because the loss or a gradient was not finite
};

// The schedule of a recipe: its durations in epochs become steps.
optim::ScheduleOptions schedule_options(const Recipe& recipe, int64_t steps_per_epoch);

class WeightUpdate {
 public:
  // Trains the parameters of `model` as `groups` say.
  // `steps_per_epoch`: optimiser steps.  The recipe and the group must outlive this object.
  WeightUpdate(const Recipe& recipe, nn::Module& model, const optim::GroupOptions& groups, int64_t steps_per_epoch,
               const ProcessGroup& group);

  // Follows a change of the recipe's number of epochs.
  void update_schedule(int64_t steps_per_epoch);

  // Backward: accumulates the gradients of the mean loss over the images of all processes, divided by the number of
  // batches of the step.  During the step's last backward pass the gradients are all-reduced.  A loss that is not
  // finite has no backward pass, and the next apply() does not change the weights.
  BatchResult accumulate(const Tensor& loss, BatchResult local, const BatchPosition& position);

  // Updates the weights, equally in all processes, and clears the gradients.  `step`: number of optimiser steps before
  // this one.  `scheduled_step`: step of the learning rate schedule; it differs from `step` after a resume with another
  // batch size.  If the loss or a gradient is not finite, skips the step or throws Error naming the first such tensor,
  // depending on recipe.non_finite.
  StepResult apply(int64_t step, int64_t scheduled_step);

  double scheduled_rate(int64_t scheduled_step) const { return schedule_.rate(scheduled_step); }
  optim::Optimizer& optimizer() { return *optimizer_; }
  optim::Ema* ema() const { return ema_.get(); }  // null without EMA
  GradientAllReduce& all_reduce() { return all_reduce_; }
  dist::ReducerStats reducer_stats() const { return all_reduce_.stats(); }

 private:
  BatchResult combine(const BatchResult& local) const;
  double decay_scale(int64_t scheduled_step) const;
  void run_backward(const Tensor& loss, double weight, bool last);

  const Recipe& recipe_;
  const ProcessGroup& group_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::Schedule schedule_;
  std::unique_ptr<optim::Ema> ema_;
  GradientAllReduce all_reduce_;
  std::string problem_;  // the first non-finite tensor since the last update; the same in all processes
};

}  // namespace vitrail::train
