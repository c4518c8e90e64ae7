// SPDX-License-Identifier: Apache-2.0
#pragma once
// Validation of a VisionTransformerConfig, and values derived from it.
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/nn/init.h"

namespace vitrail::models {

// Returns the configuration.  Throws Error naming the field whose value or combination is invalid.
const VisionTransformerConfig& checked(const VisionTransformerConfig& config);

bool has_swiglu(const VisionTransformerConfig& config);
int64_t mlp_hidden_of(const VisionTransformerConfig& config);
int64_t pool_mlp_hidden_of(const VisionTransformerConfig& config);
// The width of VisionTransformer::pool(), and that of forward() without a head, which may have a hidden layer behind
// it.
int64_t pooled_width_of(const VisionTransformerConfig& config);
int64_t feature_width_of(const VisionTransformerConfig& config);
nn::init::Scheme scheme_of(const VisionTransformerConfig& config);
kernels::Activation head_activation(const VisionTransformerConfig& config);

// Initialisers of CLS, distillation and register tokens, and of learned positions.
struct TokenInit {
  Initializer tokens, positions;
};
TokenInit token_init_of(const VisionTransformerConfig& config);

}  // namespace vitrail::models
