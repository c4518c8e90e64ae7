// SPDX-License-Identifier: Apache-2.0
#pragma once
// The fields of a recipe, and overrides of its JSON before it is parsed.
#include <string>

#include "vitrail/base/fields_json_internal.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// All but "model".
void describe_recipe(Fields& fields, Recipe& recipe);

// Applies "key.path=value" to a recipe.  Missing objects on the path are created.  The value is JSON, or a string if it
// does not parse as JSON.  Throws Error for a setting without "=", and if a value on the path is not an object.
void apply_override(nlohmann::ordered_json& json, const std::string& setting);

}  // namespace vitrail::train
