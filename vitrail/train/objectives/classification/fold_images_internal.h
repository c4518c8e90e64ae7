// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the folds of a cross-validation still have the images that they began with.
#include <filesystem>
#include <vector>

#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// recipes: of each fold, whose run is in folds/1, folds/2, … of `folder`.  Throws Error if one of these runs was on
// other images: other partitions would hold out images twice or never.  Recipes with other data are left to train(),
// which refuses them unless allow_changes.  Checkpoints of older versions tell nothing.
void check_images_of_folds(const std::filesystem::path& folder, const std::vector<Recipe>& recipes, bool allow_changes);

}  // namespace vitrail::train
