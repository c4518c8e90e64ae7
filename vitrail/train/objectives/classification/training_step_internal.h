// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of a batch of classification.
#include <memory>
#include <string>

#include "vitrail/data/loader/loader.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/objectives/classification/teacher_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {

class TrainingStep {
 public:
  // `teacher`: null without distillation.  `class_weights`: as for ops::cross_entropy.  The model, the recipe and the
  // group must outlive this object.
  TrainingStep(const Recipe& recipe, models::VisionTransformer& model, const ProcessGroup& group,
               std::unique_ptr<Teacher> teacher = nullptr, Tensor class_weights = {});

  // Runs the forward pass of this process's images of a batch and passes their mean loss to `backward`.  Puts the model
  // into training mode.  The rate of PatchDropout depends on position.epochs.
  BatchResult accumulate(const data::Batch& batch, const BatchPosition& position, const Backward& backward);

 private:
  void set_patch_drop(double epochs);
  Tensor loss_of(const models::VisionTransformer::Heads& heads, const data::Batch& batch) const;
  double weight_of(const data::Batch& batch) const;

  const Recipe& recipe_;
  const ProcessGroup& group_;
  models::VisionTransformer& model_;
  std::unique_ptr<Teacher> teacher_;
  Tensor class_weights_;  // f32 [classes], or undefined
};

}  // namespace vitrail::train
