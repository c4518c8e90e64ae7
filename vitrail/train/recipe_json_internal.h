// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recipe's JSON before it is read.
#include <string>

#include "vitrail/train/schema_internal.h"

namespace vitrail::train {

// Sets "key.path=value": objects on the way are made where they are missing.  The value is JSON, or a string where it
// does not parse.  Throws Error for a setting without "=", and where something on the way is no object.
void apply_override(Json& json, const std::string& setting);

}  // namespace vitrail::train
