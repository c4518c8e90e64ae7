// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "detect", and what else such a recipe must say.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// "detect": objects with boxes.  The model is an RF-DETR, or gets RF-DETR's projector and decoder.
struct DetectionRecipe {
  bool train_backbone = true;  // else the Vision Transformer is frozen
  // Side of the square input in pixels; 0: that of the detector that training starts from, else 320 or the next
  // multiple of patch size and windows.
  int64_t size = 0;
  int64_t groups = 4;  // groups of queries (Chen et al. 2022, "Group DETR"); at most those of the detector
  double mosaic = 0;   // probability of an image of four
  // Those of a new detector:
  int64_t windows = 2;  // the backbone has so many along each side
  int64_t queries = 100;
  int64_t layers = 2;  // the decoder has so many
  int64_t width = 256;
};

// The section of a recipe of this objective.
inline const DetectionRecipe& detection_of(const Recipe& recipe) {
  return std::any_cast<const DetectionRecipe&>(recipe.section);
}

void describe_detection_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_detection_recipe(const Recipe& recipe, std::vector<std::string>& problems);

}  // namespace vitrail::train
