// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json of CLIP and MetaCLIP 2.  Absent fields have the defaults of CLIPVisionConfig
// and CLIPTextConfig.
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kProjectionDim = 512;

// The fields of a nested configuration: an empty object if it is absent.
Json nested(const JsonFields& file, const char* key) { return file.has(key) ? file.at(key) : Json::object(); }

void read_vision(const JsonFields& file, VisionTransformerConfig& vit) {
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{32, 32});
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(768);
  vit.depth = file.integer("num_hidden_layers").value_or(12);
  vit.num_heads = file.integer("num_attention_heads").value_or(12);
  vit.mlp_hidden = file.integer("intermediate_size").value_or(3072);
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-5);
  vit.act_layer = read_hidden_act(file, "quick_gelu");
  vit.attn_drop_rate = file.number("attention_dropout").value_or(0.0);
  vit.pre_norm = true;
  vit.pos_interp = {.antialias = false, .offset = 0};
}

// CLIPForImageClassification: a linear layer on the mean of the patches, which no norm precedes.
void read_classifier(const JsonFields& file, ModelConfig& config) {
  config.labels = read_labels(file);
  config.vit.num_classes =
      config.labels.empty() ? file.integer("num_labels").value_or(2) : static_cast<int64_t>(config.labels.size());
  config.vit.global_pool = GlobalPool::avg;
  config.vit.final_norm = false;
}

void project_to(int64_t width, VisionTransformerConfig& vit) {
  vit.num_classes = width;
  vit.projection_head = true;
}

}  // namespace

bool is_clip(const std::string& model_type) {
  return model_type == "clip" || model_type == "clip_vision_model" || model_type == "metaclip_2" ||
         model_type == "metaclip_2_vision_model";
}

ModelConfig read_clip_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  const bool tower_alone = config.architecture.ends_with("_vision_model");
  const Json vision = tower_alone ? json : nested(file, "vision_config");
  read_vision(JsonFields(vision, tower_alone ? where : file.path("vision_config")), config.vit);
  config.vit.num_classes = 0;
  const int64_t projection_dim = file.integer("projection_dim").value_or(kProjectionDim);
  if (architecture_ends_with(file, "ForImageClassification")) {
    read_classifier(file, config);
  } else if (!tower_alone) {
    project_to(projection_dim, config.vit);
    const Json text = nested(file, "text_config");
    config.text = read_clip_text(JsonFields(text, file.path("text_config")), projection_dim);
  } else if (architecture_ends_with(file, "WithProjection")) {
    project_to(projection_dim, config.vit);
  }
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, config.vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
