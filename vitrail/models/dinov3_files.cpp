// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dinov3_files_internal.h"

namespace vitrail::models {

void read_dinov3_files(const weights::Checkpoint& checkpoint, VisionTransformerConfig& vit) {
  const Tensor periods = checkpoint.tensor("rope_embed.periods").to(DType::f64).contiguous();
  vit.rope_periods.assign(periods.data<double>(), periods.data<double>() + periods.numel());
  vit.use_rot_pos_emb = true;
  vit.rope_type = nn::RotaryType::dinov3;
  vit.rope_rotate_half = true;
  vit.qkv_bias = checkpoint.has("blocks.0.attn.qkv.bias");
  vit.attn_type = AttentionType::eva;
}

}  // namespace vitrail::models
