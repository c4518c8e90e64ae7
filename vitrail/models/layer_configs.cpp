// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/layer_configs_internal.h"

#include "vitrail/models/derived_config_internal.h"

namespace vitrail::models {

std::array<int64_t, 2> own_grid(const VisionTransformerConfig& config) {
  return {config.img_size[0] / config.patch_size[0], config.img_size[1] / config.patch_size[1]};
}

int64_t prefix_of(const VisionTransformerConfig& config) {
  return (config.class_token ? 1 : 0) + (config.dist_token ? 1 : 0) + config.reg_tokens;
}

nn::PatchEmbedConfig patch_embed_config(const VisionTransformerConfig& config) {
  nn::PatchEmbedConfig patch{.img_size = config.img_size,
                             .patch_size = config.patch_size,
                             .in_chans = config.in_chans,
                             .embed_dim = config.embed_dim,
                             .bias = config.patch_bias.value_or(!config.pre_norm),
                             .norm_layer = config.norm_layer,
                             .dynamic_img_size = config.dynamic_img_size,
                             .allow_remainder = config.allow_remainder,
                             .init = scheme_of(config)};
  const bool pre = config.patch_norm == PatchNorm::pre || config.patch_norm == PatchNorm::both;
  const bool post = config.patch_norm == PatchNorm::post || config.patch_norm == PatchNorm::both;
  if (pre) patch.input_norm_eps = config.norm_eps;
  if (post) patch.norm_eps = config.norm_eps;
  return patch;
}

nn::BlockConfig block_config(const VisionTransformerConfig& config, int64_t layer) {
  nn::BlockConfig block;
  block.attention = {.dim = config.embed_dim,
                     .num_heads = config.num_heads,
                     .head_dim = config.head_dim,
                     .qkv_bias = config.qkv_bias,
                     .k_bias = config.attn_type != AttentionType::eva,
                     .qk_scale = config.qk_scale,
                     .qk_norm = config.qk_norm,
                     .scale_norm = config.scale_attn_inner,
                     .norm_eps = config.norm_eps,
                     .norm_layer = config.norm_layer,
                     .proj_bias = config.proj_bias,
                     .attn_drop = config.attn_drop_rate,
                     .proj_drop = config.proj_drop_rate,
                     .rotary_pairs = config.rope_rotate_half ? ops::RotaryPairs::halves : ops::RotaryPairs::interleaved,
                     .init = scheme_of(config)};
  if (config.use_rel_pos_bias) {
    block.attention.rel_pos_grid = own_grid(config);
    block.attention.rel_pos_resampling = config.rel_pos_interp;
  }
  block.mlp_hidden = mlp_hidden_of(config);
  block.activation = config.act_layer;
  block.swiglu = has_swiglu(config);
  block.scale_mlp = config.scale_mlp;
  block.norm_eps = config.norm_eps;
  block.norm_first = config.norm_first;
  block.res_post_norm = config.use_post_norm;
  if (!config.use_post_norm) block.init_values = config.init_values;  // the norms scale the branches
  block.mlp_drop = config.proj_drop_rate;
  if (config.depth > 1) {  // stochastic depth grows linearly over the depth
    block.drop_path = config.drop_path_rate * static_cast<double>(layer) / static_cast<double>(config.depth - 1);
  }
  return block;
}

nn::AttentionPoolConfig attention_pool_config(const VisionTransformerConfig& config) {
  return {.dim = config.embed_dim,
          .out_dim = config.attn_pool_dim,
          .num_heads = config.attn_pool_num_heads.value_or(config.num_heads),
          .mlp_hidden = pool_mlp_hidden_of(config),
          .activation = config.act_layer,
          .norm_eps = config.norm_eps,
          .norm_layer = config.norm_layer,
          .q_proj = config.attn_pool_q_proj,
          .qkv_bias = config.attn_pool_qkv_bias,
          .input_norms = config.attn_pool_input_norms,
          .init = scheme_of(config)};
}

nn::RotaryEmbeddingConfig rotary_config(const VisionTransformerConfig& config) {
  return {.head_dim = config.head_dim.value_or(config.embed_dim / config.num_heads),
          .num_heads = config.num_heads,
          .depth = config.depth,
          .type = config.rope_type,
          .temperature = config.rope_temperature,
          .offset = config.rope_grid_offset,
          .x_first = config.rope_grid_indexing == GridIndexing::xy,
          .reference = config.ref_feat_shape,
          .periods = config.rope_periods};
}

}  // namespace vitrail::models
