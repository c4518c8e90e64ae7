// SPDX-License-Identifier: Apache-2.0
#pragma once
// An objective without labels: the model tells by which quarter turn an image was rotated (Gidaris et al. 2018).
#include "vitrail/train/objectives/objective.h"

namespace extending {

vitrail::train::ObjectiveRow rotation_objective();

}  // namespace extending
