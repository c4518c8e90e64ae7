// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of named architectures.
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

struct Architecture {
  std::string name;    // as registered by timm, or one of the library's own
  std::string credit;  // the paper or code that it comes from
  VisionTransformerConfig config;
  bool in_timm = true;
};

const std::vector<Architecture>& architectures();

// The architecture with this name, which may carry the tag of timm's weights ("deit_tiny_patch16_224.fb_in1k"); null if
// there is none.
const Architecture* find_architecture(const std::string& name);

// The three registered names that share the most words (family, size, patch) with `name`; the nearest
// spelling first.  For error messages.
std::vector<std::string> similar_architectures(const std::string& name);

}  // namespace vitrail::models
