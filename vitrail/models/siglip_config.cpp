// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of SigLIP.
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

// SiglipForImageClassification: a linear layer on the mean of the normalised patches, without the pooling head.
void read_siglip_classifier(const JsonFields& file, ModelConfig& config) {
  read_classes(file, config);
  config.vit.global_pool = GlobalPool::avg;
  config.vit.fc_norm = false;
}

}  // namespace

void read_siglip_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  const JsonFields vision = vision_fields(file);
  read_encoder(vision, {.hidden_act = "gelu_pytorch_tanh"}, vit);
  vit.class_token = false;
  for (size_t axis = 0; axis < 2; ++axis) {  // so400m/14 at 384: the last 6 pixels are no patch
    if (vit.img_size[axis] % vit.patch_size[axis] != 0) vit.allow_remainder = true;
  }
  vit.global_pool = vision.boolean("vision_use_head").value_or(true) ? GlobalPool::map : GlobalPool::none;
  if (architecture_ends_with(file, "ForImageClassification")) {
    read_siglip_classifier(file, config);
  } else if (config.architecture == "siglip") {
    config.text = read_siglip_text(file.nested("text_config"));
  }
}

}  // namespace vitrail::models
