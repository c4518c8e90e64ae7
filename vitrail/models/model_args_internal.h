// SPDX-License-Identifier: Apache-2.0
#pragma once
// model_args: the fields of VisionTransformerConfig as JSON.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// Sets the fields that the object names.  An unknown key or a wrong type is an Error with its path.
void read_model_args(const JsonFields& fields, VisionTransformerConfig& config);

// Every field that differs from `base`.
Json write_model_args(const VisionTransformerConfig& config, const VisionTransformerConfig& base = {});

}  // namespace vitrail::models
