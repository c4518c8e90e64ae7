// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a recipe of the objective "segment" must say.
#include <string>
#include <vector>

#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// Adds a line for each setting that does not go with the objective "segment"; nothing for other objectives.
void check_segment_recipe(const Recipe& recipe, std::vector<std::string>& problems);

}  // namespace vitrail::train
