// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/error.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// Throws Error naming `where` for a model without logits of one class each.
inline void require_classifier_of_images(const VisionTransformerConfig& config, const char* where) {
  if (config.num_classes == 0 || config.projection_head || config.global_pool == GlobalPool::none)
    throw Error(where, "a model with a classifier of the pooled features", "one without");
}

}  // namespace vitrail::models
