// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a model is for, by its name or its weights.
#include <string>

#include "vitrail/models/sam/sam.h"

namespace vitrail::app {

// Whether it is a Segment Anything model.  False for weights that cannot be read: loading them reports why.
bool is_segmentation_model(const std::string& path);

// Whether it is one, or a registered architecture of Segment Anything.
bool names_segmentation(const std::string& name_or_path);

// Loads or builds that model: a registered architecture has random weights (seed 0), or none on the meta device.
models::Sam segmentation_model(const std::string& name_or_path, Device device = Device::cpu);

}  // namespace vitrail::app
