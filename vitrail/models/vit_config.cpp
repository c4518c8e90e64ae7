// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of ViT, ViT-MAE, MSN, I-JEPA and DeiT: ViTConfig and classes with the same fields.
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {

void read_vit_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  const std::string& type = config.architecture;
  read_encoder(file, {.norm_eps = type == "vit_msn" ? 1e-6 : 1e-12}, vit);
  vit.qkv_bias = file.boolean("qkv_bias").value_or(true);
  if (type == "ijepa") {  // pooled: the mean of the tokens after the last norm
    vit.class_token = false;
    vit.global_pool = GlobalPool::avg;
    vit.fc_norm = false;
  }
  // Only the model "WithTeacher" has a distillation head.  In others no head reads the distillation token, so it is a
  // register with a position embedding.
  vit.dist_token = type == "deit" && architecture_ends_with(file, "WithTeacher");
  if (type == "deit" && !vit.dist_token) vit.reg_tokens = 1;
  if (vit.dist_token || architecture_ends_with(file, "ForImageClassification")) read_classes(file, config);
}

}  // namespace vitrail::models
