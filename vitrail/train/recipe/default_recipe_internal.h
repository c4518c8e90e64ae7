// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of default_recipe().
#include <string>

#include "vitrail/train/recipe/default_recipe.h"

namespace vitrail::train {

// The model to start from.
void set_start(const DefaultRecipeOptions& options, DefaultRecipe& result);

// A power of two from 4 to 64, unless there are fewer images.
int64_t batch_size_for(int64_t images);

// The epochs, the warm-up and the patience, from the numbers of images.
void choose_epochs(const DefaultRecipeOptions& options, DefaultRecipe& result);

// Why there are so many epochs, and what ends them.
std::string epochs_reason(const DefaultRecipeOptions& options, int64_t steps);
std::string end_text(const DefaultRecipeOptions& options, const DefaultRecipe& chosen);

// The recipe of a dataset of label maps.
DefaultRecipe map_recipe(const DefaultRecipeOptions& options);

}  // namespace vitrail::train
