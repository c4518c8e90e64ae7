// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's published sizes, by the names of its code (segment_anything/build_sam.py).
#include <string>
#include <vector>

#include "vitrail/models/sam/config.h"

namespace vitrail::models {

struct SamArchitecture {
  std::string name;
  SamConfig config;
};

const std::vector<SamArchitecture>& sam_architectures();  // sam_vit_b, sam_vit_l, sam_vit_h

// The architecture with this name; null if there is none.
const SamArchitecture* find_sam_architecture(const std::string& name);

}  // namespace vitrail::models
