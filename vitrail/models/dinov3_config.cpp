// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of DINOv3 (dinov3_vit).
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"

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

void read_mlp(const JsonFields& file, VisionTransformerConfig& vit) {
  vit.mlp_hidden = file.integer("intermediate_size").value_or(1536);
  vit.swiglu_mlp = file.boolean("use_gated_mlp").value_or(false);
  vit.act_layer = read_hidden_act(file, "gelu");
  if (vit.swiglu_mlp && vit.act_layer != kernels::Activation::silu) {
    throw Error(file.path("hidden_act"), "silu with use_gated_mlp (SwiGLU)", "another activation");
  }
}

}  // namespace

bool resizes_floats(const JsonFields& preprocessor) {
  return preprocessor.text("image_processor_type").value_or("").starts_with("DINOv3ViTImageProcessor");
}

bool is_dinov3(const std::string& model_type) { return model_type == "dinov3_vit"; }

ModelConfig read_dinov3_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  VisionTransformerConfig& vit = config.vit;
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{16, 16});
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(384);
  vit.depth = file.integer("num_hidden_layers").value_or(12);
  vit.num_heads = file.integer("num_attention_heads").value_or(6);
  vit.reg_tokens = file.integer("num_register_tokens").value_or(0);
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-5);
  vit.init_values = file.number("layerscale_value").value_or(1.0);
  vit.attn_drop_rate = file.number("attention_dropout").value_or(0.0);
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.0);
  vit.num_classes = 0;  // the pooled features are the class token's
  vit.pos_embed = PositionEmbedding::none;
  vit.use_rot_pos_emb = true;
  vit.rope_type = nn::RotaryType::dinov3;
  vit.rope_rotate_half = true;
  vit.dynamic_img_size = true;
  vit.rope_temperature = file.number("rope_theta").value_or(100.0);
  read_biases(file, vit);
  read_mlp(file, vit);
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
