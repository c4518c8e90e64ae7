// SPDX-License-Identifier: Apache-2.0
#pragma once
// model_args: the fields of VisionTransformerConfig in JSON.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// Sets the fields that the object contains.  Throws Error naming the path of an unknown key or a wrong type.  `others`:
// other names that the caller reads, which an error about an unknown key lists too.
void read_model_args(const JsonFields& fields, VisionTransformerConfig& config,
                     const std::vector<std::string>& others = {});

// The fields that differ from `base`.
Json write_model_args(const VisionTransformerConfig& config, const VisionTransformerConfig& base = {});

}  // namespace vitrail::models
