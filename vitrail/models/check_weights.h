// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether the weights of a model have the names and shapes of its configuration.
#include "vitrail/models/load.h"

namespace vitrail::models {

// Throws the Error of build_model() and build_text_tower() about names and shapes.  Reads no values.
void check_weights(const OpenedModel& opened);

}  // namespace vitrail::models
