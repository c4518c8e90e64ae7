// SPDX-License-Identifier: Apache-2.0
#pragma once
// Overrides of a recipe's JSON before it is parsed.
#include <string>

#include "vitrail/train/recipe/schema_internal.h"

namespace vitrail::train {

// Applies "key.path=value" to a recipe.  Missing objects on the path are created.  The value is JSON, or a string if it
// does not parse as JSON.  Throws Error for a setting without "=", and if a value on the path is not an object.
void apply_override(Json& json, const std::string& setting);

}  // namespace vitrail::train
