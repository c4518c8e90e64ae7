// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configurations of a VisionTransformer's layers.
#include <array>

#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/nn/attention_pool.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/rotary_embedding.h"

namespace vitrail::models {

// The rows and columns of patches of an image of the configured size.
std::array<int64_t, 2> own_grid(const VisionTransformerConfig& config);

// The number of prefix tokens: CLS, distillation, registers.
int64_t prefix_of(const VisionTransformerConfig& config);

nn::PatchEmbedConfig patch_embed_config(const VisionTransformerConfig& config);
nn::BlockConfig block_config(const VisionTransformerConfig& config, int64_t layer);
nn::AttentionPoolConfig attention_pool_config(const VisionTransformerConfig& config);
nn::RotaryEmbeddingConfig rotary_config(const VisionTransformerConfig& config);

}  // namespace vitrail::models
