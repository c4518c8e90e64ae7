// SPDX-License-Identifier: Apache-2.0
#pragma once
// The registered architectures: model variants are rows of a table.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// A name as timm registers it (or one of the documents' models), and what it is.
struct Architecture {
  std::string name;
  std::string source;  // the paper or document it comes from
  VisionTransformerConfig config;
};

const std::vector<Architecture>& architectures();

// The architecture of that name; null when there is none.
const Architecture* find_architecture(const std::string& name);

// The registered names most like `name`, for an error that helps.
std::vector<std::string> similar_architectures(const std::string& name);

}  // namespace vitrail::models
