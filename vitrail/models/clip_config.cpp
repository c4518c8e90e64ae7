// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of CLIP and MetaCLIP 2.
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kProjectionDim = 512;

// CLIPForImageClassification: a linear layer on the mean of the patches, which no norm precedes.
void read_clip_classifier(const JsonFields& file, ModelConfig& config) {
  read_classes(file, config);
  config.vit.global_pool = GlobalPool::avg;
  config.vit.final_norm = false;
}

// Old files have a tower's fields in a "…_config_dict" too.  It replaces the other one: fields that it lacks have the
// defaults of their class (CLIPConfig.__post_init__).
JsonFields tower_fields(const JsonFields& file, const char* dict, const JsonFields& otherwise) {
  return file.has(dict) ? file.nested(dict) : otherwise;
}

void project_to(int64_t width, VisionTransformerConfig& vit) {
  vit.num_classes = width;
  vit.projection_head = true;
}

}  // namespace

void read_clip_config(const JsonFields& file, ModelConfig& config) {
  const bool tower_alone = config.architecture.ends_with("_vision_model");
  const JsonFields vision = tower_fields(file, "vision_config_dict", vision_fields(file));
  read_encoder(vision, {.patch_size = 32, .norm_eps = 1e-5, .hidden_act = "quick_gelu"}, config.vit);
  config.vit.pre_norm = true;
  const int64_t projection_dim = file.integer("projection_dim").value_or(kProjectionDim);
  if (architecture_ends_with(file, "ForImageClassification")) {
    read_clip_classifier(file, config);
  } else if (!tower_alone) {
    project_to(projection_dim, config.vit);
    config.text = read_clip_text(tower_fields(file, "text_config_dict", file.nested("text_config")), projection_dim);
    // 2 is no old file's value here: it is the end-of-text token of XLM-V's tokenizer.
    if (config.architecture == "metaclip_2") config.text->pool = TextPool::first_eos;
  } else if (architecture_ends_with(file, "WithProjection")) {
    project_to(projection_dim, config.vit);
  }
}

}  // namespace vitrail::models
