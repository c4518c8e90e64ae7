// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "pretrain", and what else such a recipe must say.
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// "pretrain": learning from images without labels.
struct PretrainRecipe {
  std::string method = "diet";  // the name of a PretrainMethodRow
  // A labelled dataset.  k nearest neighbours and a linear probe on it tell how good the features are.  Empty: none.
  std::string probe{};
  double head_lr = 1e-3;  // peak learning rate of the layers that are no part of the model
};

// The section of a recipe of this objective.
inline const PretrainRecipe& pretrain_of(const Recipe& recipe) {
  return std::any_cast<const PretrainRecipe&>(recipe.section);
}

void describe_pretrain_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_pretrain_recipe(const Recipe& recipe, std::vector<std::string>& problems);

}  // namespace vitrail::train
