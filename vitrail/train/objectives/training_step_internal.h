// SPDX-License-Identifier: Apache-2.0
#pragma once
// One optimiser step: forward and backward passes of its batches, then the update.
#include <memory>
#include <string>

#include "vitrail/data/loader/loader.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/objectives/teacher_internal.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/weight_update_internal.h"

namespace vitrail::train {

// The result of one batch, over all processes.
struct BatchResult {
  double loss = 0;  // mean over the images; not finite if it is not finite in any process
  int64_t correct = 0, images = 0;
  double weight = 0;  // what the mean loss was divided by: images, or the sum of their class weights
};

// The position of a batch in the run and among the batches that are accumulated into one step.
struct BatchPosition {
  uint64_t number = 0;           // index of the batch in the run: a key of the random numbers of dropout and drop path
  int64_t index = 0, count = 1;  // batch `index` of `count` of the step
};

class TrainingStep {
 public:
  // `steps_per_epoch`: optimiser steps.  `teacher`: null without distillation.  `class_weights`: as for
  // ops::cross_entropy.  The model, the recipe and the group must outlive this object.
  TrainingStep(const Recipe& recipe, models::VisionTransformer& model, int64_t steps_per_epoch,
               std::unique_ptr<Teacher> teacher, const ProcessGroup& group, Tensor class_weights = {});

  // Follows a change of the recipe's number of epochs.
  void update_schedule(int64_t steps_per_epoch) { update_.update_schedule(steps_per_epoch); }

  // Sets the position of the next batch in epochs, with fractions.  The rate of PatchDropout depends on it.
  void set_epoch(double epoch);

  // Runs the forward and backward pass of this process's images of a batch and accumulates the gradients of the mean
  // loss over the images of all processes, divided by the number of batches of the step.  Puts the model into training
  // mode.  During the step's last backward pass the gradients are all-reduced.
  BatchResult accumulate(const data::Batch& batch, const BatchPosition& position);

  // WeightUpdate::apply().
  StepResult update(int64_t step, int64_t scheduled_step) { return update_.apply(step, scheduled_step); }

  double scheduled_rate(int64_t scheduled_step) const { return update_.scheduled_rate(scheduled_step); }
  optim::Optimizer& optimizer() { return update_.optimizer(); }
  optim::Ema* ema() const { return update_.ema(); }  // null without EMA
  dist::ReducerStats reducer_stats() const { return update_.reducer_stats(); }

 private:
  Tensor loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const;
  double weight_of(const data::Batch& batch) const;
  BatchResult combine(const BatchResult& local) const;
  void run_backward(const Tensor& loss, double weight, bool last);

  const Recipe& recipe_;
  const ProcessGroup& group_;
  models::VisionTransformer& model_;
  std::unique_ptr<Teacher> teacher_;
  Tensor class_weights_;  // f32 [classes], or undefined
  WeightUpdate update_;
};

}  // namespace vitrail::train
