// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "semantic", and what else such a recipe must say.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/models/semantic/config.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

constexpr int64_t kDptMaps = 4;  // blocks that a dpt head reads

// "semantic": a class for each pixel, by a head on the patches of a Vision Transformer.
struct SemanticRecipe {
  models::SemanticHead head = models::SemanticHead::linear;
  bool train_backbone = false;  // else the Vision Transformer is frozen
  // Blocks whose outputs the head reads, from 0; empty: the last one, and for dpt four that are evenly spaced.
  std::vector<int64_t> layers{};
  bool batch_norm = true;              // linear: normalises the features by their statistics on the training images
  int64_t ignored = 255;               // label of pixels without a class
  bool reduce_labels = false;          // 0 stands for no class, and class i for i − 1, as in ADE20K's files
  std::vector<std::string> classes{};  // their names by label; empty: those of the dataset
};

// The section of a recipe of this objective.
inline const SemanticRecipe& semantic_of(const Recipe& recipe) {
  return std::any_cast<const SemanticRecipe&>(recipe.section);
}

void describe_semantic_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_semantic_recipe(const Recipe& recipe, std::vector<std::string>& problems);

}  // namespace vitrail::train
