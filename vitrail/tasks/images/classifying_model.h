// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "vitrail/pipeline/model.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

constexpr const char* kClassifiers = "a Vision Transformer or a Hiera";  // Task::model

// A model whose passes give logits of classes (infer::Output::logits), pooled features [B, D] (features), or both.
class ClassifyingModel : public LoadedModel {
 public:
  // Classes, labels and problem type; num_classes 0: no classifier.
  virtual const models::ModelConfig& classes() const = 0;

  std::vector<Prediction> predictions(std::span<const float> logits, int64_t top, const std::string& where) const {
    return predictions_of(classes(), class_names(), logits, top, where);
  }
};

}  // namespace vitrail::tasks
