// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of named architectures.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

struct Architecture {
  std::string name;    // as registered by timm, or one of the library's own
  std::string source;  // the paper or code that it comes from
  VisionTransformerConfig config;
};

const std::vector<Architecture>& architectures();

// The architecture with this name; null if there is none.
const Architecture* find_architecture(const std::string& name);

// The three registered names with the smallest edit distance to `name`, for error messages.
std::vector<std::string> similar_architectures(const std::string& name);

}  // namespace vitrail::models
