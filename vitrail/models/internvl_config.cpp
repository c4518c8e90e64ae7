// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of InternVL's image tower.
#include "vitrail/base/error.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

void check_internvl(const JsonFields& file) {
  if (file.boolean("use_qk_norm").value_or(false)) throw Error(file.path("use_qk_norm"), "false", "true");
}

}  // namespace

void read_internvl_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  check_internvl(file);
  read_encoder(file,
               {.patch_size = 14,
                .hidden_size = 1024,
                .num_hidden_layers = 24,
                .num_attention_heads = 16,
                .intermediate_size = 4096},
               vit);
  if (!file.has("image_size")) vit.img_size = {448, 448};
  vit.qkv_bias = file.boolean("attention_bias").value_or(false);
  vit.init_values = file.number("layer_scale_init_value").value_or(0.1);
  if (file.text("norm_type").value_or("layer_norm") == "rms_norm") vit.norm_layer = nn::NormLayer::rms_norm;
  if (!file.boolean("use_absolute_position_embeddings").value_or(true)) vit.pos_embed = PositionEmbedding::none;
  vit.dynamic_img_size = true;
  if (file.boolean("use_mean_pooling").value_or(true)) {  // no norm precedes the mean
    vit.global_pool = GlobalPool::avg;
    vit.final_norm = false;
  }
}

}  // namespace vitrail::models
