// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "vitrail/explain/arrays_internal.h"
#include "vitrail/image/transform.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::explain {

// The names of the tokens before the patches, in their order: class, distillation, register.
nlohmann::ordered_json special_tokens(const models::VisionTransformerConfig& config);

// Whether the logits are of classes, from pooled features.
bool is_classifier(const models::VisionTransformerConfig& config);

// The scales of each channel: the model's input is (byte / 255 − mean) / std.
std::vector<ChannelScale> pixel_scales(const image::EvalTransform& transform, int64_t channels);

}  // namespace vitrail::explain
