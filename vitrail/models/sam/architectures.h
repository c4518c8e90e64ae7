// SPDX-License-Identifier: Apache-2.0
#pragma once
// The published sizes of Segment Anything, by the names of its code (segment_anything/build_sam.py), and of SAM 2 and
// 2.1, by those of their checkpoints.
#include <string>
#include <vector>

#include "vitrail/models/sam/config.h"

namespace vitrail::models {

struct SamArchitecture {
  std::string name;
  SamConfig config;
};

const std::vector<SamArchitecture>& sam_architectures();  // sam_vit_b, sam2_hiera_tiny, …

// The architecture with this name; null if there is none.
const SamArchitecture* find_sam_architecture(const std::string& name);

}  // namespace vitrail::models
