// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json of AIMv2's image towers.  Absent fields have the defaults of
// Aimv2VisionConfig.
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

void check_supported(const JsonFields& file) {
  const std::string act = file.text("hidden_act").value_or("silu");
  if (act != "silu" && act != "swish") throw Error(file.path("hidden_act"), "silu", "\"" + act + "\"");
  const bool qkv_bias = file.boolean("qkv_bias").value_or(false), mlp_bias = file.boolean("mlp_bias").value_or(false);
  if (qkv_bias != mlp_bias) throw Error(file.path("mlp_bias"), "the value of qkv_bias", mlp_bias ? "true" : "false");
}

void read_vision(const JsonFields& file, VisionTransformerConfig& vit) {
  check_supported(file);
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{14, 14});
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(1024);
  vit.depth = file.integer("num_hidden_layers").value_or(24);
  vit.num_heads = file.integer("num_attention_heads").value_or(8);
  vit.mlp_hidden = file.integer("intermediate_size").value_or(2816);
  vit.mlp_layer = MlpLayer::swiglu;
  vit.qkv_bias = vit.proj_bias = vit.attn_pool_qkv_bias = file.boolean("qkv_bias").value_or(false);
  vit.norm_layer = nn::NormLayer::rms_norm;
  vit.norm_eps = file.number("rms_norm_eps").value_or(1e-5);
  vit.patch_norm = PatchNorm::post;
  vit.class_token = false;
  vit.attn_drop_rate = file.number("attention_dropout").value_or(0.0);
  if (file.boolean("is_native").value_or(false)) {  // its images have any size
    vit.pos_embed = PositionEmbedding::sincos2d;
    vit.dynamic_img_size = true;
  }
  vit.pos_interp = {.antialias = false, .offset = 0};
  const bool has_head = file.boolean("use_head").value_or(true);
  vit.global_pool = has_head ? GlobalPool::map : GlobalPool::avg;
  vit.fc_norm = false;
  vit.attn_pool_q_proj = false;
  vit.attn_pool_mlp_ratio = 0;
  vit.num_classes = 0;
}

}  // namespace

bool is_aimv2(const std::string& model_type) { return model_type == "aimv2" || model_type == "aimv2_vision_model"; }

ModelConfig read_aimv2_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  const bool nested = file.has("vision_config");
  read_vision(nested ? JsonFields(file.at("vision_config"), file.path("vision_config")) : file, config.vit);
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, config.vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
