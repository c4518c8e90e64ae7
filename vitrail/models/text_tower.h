// SPDX-License-Identifier: Apache-2.0
#pragma once
// Whether a model has a text tower for build_text_tower() (load.h).
#include "vitrail/models/load.h"

namespace vitrail::models {

// False for an image model alone, for a text tower of another library, and for a dual model's configuration with the
// weights of its image tower alone.
bool has_text_tower(const OpenedModel& opened);

}  // namespace vitrail::models
