// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of AIMv2's image towers.
#include "vitrail/base/error.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

void check_aimv2(const JsonFields& file) {
  const std::string act = file.text("hidden_act").value_or("silu");
  if (act != "silu" && act != "swish") throw Error(file.path("hidden_act"), "silu", "\"" + act + "\"");
  const bool qkv_bias = file.boolean("qkv_bias").value_or(false), mlp_bias = file.boolean("mlp_bias").value_or(false);
  if (qkv_bias != mlp_bias) throw Error(file.path("mlp_bias"), "the value of qkv_bias", mlp_bias ? "true" : "false");
}

}  // namespace

void read_aimv2_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  const JsonFields vision = vision_fields(file);
  check_aimv2(vision);
  read_encoder(vision,
               {.patch_size = 14,
                .hidden_size = 1024,
                .num_hidden_layers = 24,
                .num_attention_heads = 8,
                .intermediate_size = 2816,
                .hidden_act = nullptr},
               vit);
  vit.mlp_layer = MlpLayer::swiglu;
  vit.qkv_bias = vit.proj_bias = vit.attn_pool_qkv_bias = vision.boolean("qkv_bias").value_or(false);
  vit.norm_layer = nn::NormLayer::rms_norm;
  vit.norm_eps = vision.number("rms_norm_eps").value_or(1e-5);
  vit.patch_norm = PatchNorm::post;
  vit.class_token = false;
  if (vision.boolean("is_native").value_or(false)) {  // its images have any size
    vit.pos_embed = PositionEmbedding::sincos2d;
    vit.dynamic_img_size = true;
  }
  vit.global_pool = vision.boolean("use_head").value_or(true) ? GlobalPool::map : GlobalPool::avg;
  vit.fc_norm = false;
  vit.attn_pool_q_proj = false;
  vit.attn_pool_mlp_ratio = 0;
}

}  // namespace vitrail::models
