// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {

// The names of the tensors of a checkpoint that are left when native tensors take the place of those that they are made
// of.  natives: names and shapes of the model.  The key map must leave the native names as they are, so that it reads
// such a mixed file too.
// Throws Error for a native tensor that the checkpoint does not have with this shape, and for one of several that a
// tensor is split into while another is missing.
std::vector<std::string> tensors_beside(const Checkpoint& checkpoint, const KeyMap& map,
                                        const std::vector<std::pair<std::string, Shape>>& natives);

}  // namespace vitrail::weights
