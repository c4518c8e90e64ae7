#pragma once
// One optimiser step: forward, loss, backward, update.
#include <memory>
#include <string>

#include "vitrail/data/loader.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/optim/ema.h"
#include "vitrail/optim/optimizer.h"
#include "vitrail/optim/schedule.h"
#include "vitrail/train/recipe.h"
#include "vitrail/train/teacher.h"

namespace vitrail::train {

// What one batch gave.
struct BatchOutcome {
  double loss = 0;  // mean over the batch
  int64_t correct = 0, images = 0;
};

struct StepOutcome {
  double learning_rate = 0, gradient_norm = 0;
  bool updated = true;  // false: left out, because something was not finite
};

class Stepper {
 public:
  // `steps_per_epoch`: optimiser steps.  The model must outlive the stepper; it is put into training mode by add().
  Stepper(const Recipe& recipe, models::VisionTransformer& model, int64_t steps_per_epoch,
          std::unique_ptr<Teacher> teacher);

  // Where in the run the next batch stands, in epochs done: how many patches it leaves out follows from that.
  void at_epoch(double epoch);

  // Adds a batch's gradients, divided by `parts`, the number of batches of this step.  `number` counts the batches of
  // the run: random layers draw under it.
  BatchOutcome add(const data::Batch& batch, uint64_t number, int64_t parts);

  // Updates the weights with what was added.  `step`: optimiser steps made before.  Where the loss or a gradient is not
  // finite the recipe decides: an Error that names the first layer, or a step that is left out.
  StepOutcome update(int64_t step);

  optim::Optimizer& optimizer() { return *optimizer_; }
  optim::Ema* average() { return ema_.get(); }  // null without one

 private:
  Tensor loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const;

  const Recipe& recipe_;
  models::VisionTransformer& model_;
  std::unique_ptr<Teacher> teacher_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  optim::Schedule schedule_;
  std::unique_ptr<optim::Ema> ema_;
  std::string problem_;  // what was not finite since the last update
};

}  // namespace vitrail::train
