// SPDX-License-Identifier: Apache-2.0
#pragma once
// The text tower in a dual model's checkpoint: build_text_tower() (load.h) builds it.
#include "vitrail/models/load.h"

namespace vitrail::models {

// False for an image model alone, for a text tower of another library, and for a dual model's configuration with the
// weights of its image tower alone.
bool has_text_tower(const OpenedModel& opened);

// The key map of the text tower, beside that of the image tower.  Throws Error if the checkpoint has none.
weights::KeyMap text_key_map(const weights::Checkpoint& checkpoint);

}  // namespace vitrail::models
