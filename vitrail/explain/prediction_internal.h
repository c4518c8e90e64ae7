// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the learning page tells of the class: predictions, the logit lens, attributions and gradients.
#include <set>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/explain/explain.h"

namespace vitrail::explain {

// A classifier, its class and the image as it sees it.
struct ClassQuestion {
  const Model& model;
  models::VisionTransformer& differentiable;
  const Tensor& input;                          // [1, C, H, W]
  const Tensor& logits;                         // [1, classes]
  const std::vector<std::string>& class_names;  // empty: the model names none
  int64_t target = 0;
  bool all_methods = false;  // also those that take long for a large model
  ProgressCallback progress = {};
};

// The members `prediction`, `attributions`, `gradients` and `classes` of the manifest, and their arrays.
struct ClassSections {
  nlohmann::ordered_json prediction, attributions, gradients, classes;
  std::vector<std::pair<std::string, std::string>> left_out;
};
ClassSections add_class_sections(const ClassQuestion& question, Arrays& arrays);

// The probability of each class, as the model's predictions have it, in f64.
std::vector<double> probabilities_of(const models::ModelConfig& config, const Tensor& logits);

}  // namespace vitrail::explain
