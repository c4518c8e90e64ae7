// SPDX-License-Identifier: Apache-2.0
#pragma once
// The detector of a run with the objective "detect".
#include <string>
#include <vector>

#include "vitrail/models/rf_detr/rf_detr.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

struct PreparedDetector {
  models::RfDetr model;
  std::vector<std::string> notes;   // how a checkpoint was adapted, for the user
  std::vector<std::string> frozen;  // name patterns of the parameters that are not trained
};

// The side of the input of a new detector on a backbone with patches of `patch` pixels.
int64_t new_detector_side(const DetectionRecipe& detection, int64_t patch);

// An RF-DETR at recipe.model.init keeps its weights; rows of the classes are copied for those of the same name.  A
// plain Vision Transformer, new or at recipe.model.init, gets a new projector and decoder.  New parts have RF-DETR's
// initial values.  Throws Error as prepare_model(), and for a Vision Transformer whose tokens are not one class token
// and patches with learned positions.
PreparedDetector prepare_detector(const Recipe& recipe, const std::vector<std::string>& classes);

}  // namespace vitrail::train
