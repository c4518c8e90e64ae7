// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a VisionTransformerConfig means, where a field does not say it by itself.
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/nn/init.h"

namespace vitrail::models {

// The configuration itself, or an Error that names the field whose value or combination makes no model.
const VisionTransformerConfig& checked(const VisionTransformerConfig& config);

int64_t mlp_hidden_of(const VisionTransformerConfig& config);
nn::init::Scheme scheme_of(const VisionTransformerConfig& config);
kernels::Activation head_activation(const VisionTransformerConfig& config);

struct TokenInit {
  Initializer tokens, positions;
};
TokenInit token_init_of(const VisionTransformerConfig& config);

}  // namespace vitrail::models
