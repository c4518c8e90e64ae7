// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of DINOv2, with and without registers, and of TIPSv2's image tower.
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {

void read_dinov2_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  const bool tips = config.architecture == "tipsv2_vision_model";
  const bool registers = config.architecture == "dinov2_with_registers";
  read_encoder(file, {.patch_size = registers ? 16 : 14, .intermediate_size = 0}, vit);
  if (tips && !file.has("image_size")) vit.img_size = {448, 448};
  vit.qkv_bias = file.boolean("qkv_bias").value_or(true);
  vit.mlp_ratio = file.number("mlp_ratio").value_or(4.0);
  if (file.boolean("use_swiglu_ffn").value_or(false)) vit.mlp_layer = MlpLayer::swiglu;
  vit.init_values = file.number("layerscale_value").value_or(1.0);
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.0);
  vit.dynamic_img_size = true;
  if (tips || registers) {
    vit.reg_tokens = file.integer("num_register_tokens").value_or(tips ? 1 : 4);
    vit.no_embed_reg = true;
    vit.pos_interp = {.antialias = true, .bilinear = tips};
  }
  if (architecture_ends_with(file, "ForImageClassification")) {
    read_classes(file, config);
    vit.global_pool = GlobalPool::token_avg;
  }
}

}  // namespace vitrail::models
