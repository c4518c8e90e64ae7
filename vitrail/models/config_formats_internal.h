// SPDX-License-Identifier: Apache-2.0
#pragma once
// The two forms of config.json, one reader each.
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {

ModelConfig read_timm_config(const Json& json, const std::string& where);  // needs "architecture"
// needs "model_type"; `preprocessor` is null when there is no preprocessor_config.json
ModelConfig read_huggingface_config(const Json& json, const Json& preprocessor, const std::string& where);
Preprocessing read_preprocessor(const Json& json, const VisionTransformerConfig& vit, const std::string& where);

}  // namespace vitrail::models
