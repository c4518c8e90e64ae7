// SPDX-License-Identifier: Apache-2.0
#pragma once
// One optimiser step: forward, loss, backward, update.
#include <memory>
#include <string>

#include "vitrail/data/loader.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/train/gradient_exchange_internal.h"
#include "vitrail/train/recipe.h"
#include "vitrail/train/teacher.h"

namespace vitrail::train {

// What one batch gave, over all processes.
struct BatchOutcome {
  double loss = 0;  // mean over the images; not finite where that of any process is not
  int64_t correct = 0, images = 0;
};

struct StepOutcome {
  double learning_rate = 0, gradient_norm = 0;
  bool updated = true;  // false: left out, because something was not finite
};

// Where a batch stands among those whose gradients make one step.
struct BatchPlace {
  uint64_t number = 0;  // of the run: random layers draw under it
  int64_t index = 0, count = 1;
};

class TrainingStep {
 public:
  // `steps_per_epoch`: optimiser steps.  The model must outlive the stepper; it is put into training mode by add().
  TrainingStep(const Recipe& recipe, models::VisionTransformer& model, int64_t steps_per_epoch,
               std::unique_ptr<Teacher> teacher, const ProcessGroup& crew);

  // Where in the run the next batch stands, in epochs done: how many patches it leaves out follows from that.
  void at_epoch(double epoch);

  // Adds the gradients of this process's part of a batch: of the mean over all its images, divided by the step's number
  // of batches.  In the last one they are summed over the processes as they become final.
  BatchOutcome add(const data::Batch& batch, const BatchPlace& place);

  // Updates the weights with what was added, alike in all processes.  `step`: optimiser steps made before;
  // `scheduled`: the step whose rate it gets, another one only after a resume with another batch.  Where the loss or a
  // gradient is not finite the recipe decides: an Error that names the first layer, or a step that is left out.
  StepOutcome update(int64_t step, int64_t scheduled);

  optim::Optimizer& optimizer() { return *optimizer_; }
  optim::Ema* average() { return ema_.get(); }  // null without one
  dist::ReducerTimes exchange_times() const { return exchange_.times(); }

 private:
  Tensor loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const;
  BatchOutcome over_all(const BatchOutcome& here) const;
  void run_backward(const Tensor& loss, double share, bool last);

  const Recipe& recipe_;
  const ProcessGroup& crew_;
  models::VisionTransformer& model_;
  std::unique_ptr<Teacher> teacher_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::Schedule schedule_;
  std::unique_ptr<optim::Ema> ema_;
  GradientExchange exchange_;
  std::string problem_;  // what was not finite since the last update, the same in all processes
};

}  // namespace vitrail::train
