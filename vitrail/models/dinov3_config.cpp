// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of DINOv3.
#include "vitrail/base/error.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

// Biases of q, k and v: of all, of q and v, or none.
void read_biases(const JsonFields& file, VisionTransformerConfig& vit) {
  const bool query = file.boolean("query_bias").value_or(true), key = file.boolean("key_bias").value_or(false),
             value = file.boolean("value_bias").value_or(true);
  if (query != value || (key && !query)) {
    throw Error(file.path("query_bias"), "biases of q, k and v, of q and v, or none", "another combination");
  }
  vit.qkv_bias = query;
  vit.attn_type = key ? AttentionType::plain : AttentionType::eva;
  for (const char* bias : {"proj_bias", "mlp_bias"}) {
    if (!file.boolean(bias).value_or(true)) throw Error(file.path(bias), "true", "false");
  }
}

}  // namespace

void read_dinov3_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;  // the pooled features are the class token's
  read_encoder(file, {.hidden_size = 384, .num_attention_heads = 6, .intermediate_size = 1536, .norm_eps = 1e-5}, vit);
  vit.reg_tokens = file.integer("num_register_tokens").value_or(0);
  vit.init_values = file.number("layerscale_value").value_or(1.0);
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.0);
  vit.pos_embed = PositionEmbedding::none;
  vit.use_rot_pos_emb = true;
  vit.rope_type = nn::RotaryType::dinov3;
  vit.rope_rotate_half = true;
  vit.dynamic_img_size = true;
  vit.rope_temperature = file.number("rope_theta").value_or(100.0);
  read_biases(file, vit);
  vit.swiglu_mlp = file.boolean("use_gated_mlp").value_or(false);
  if (vit.swiglu_mlp && vit.act_layer != kernels::Activation::silu) {
    throw Error(file.path("hidden_act"), "silu with use_gated_mlp (SwiGLU)", "another activation");
  }
}

}  // namespace vitrail::models
