// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json of SigLIP.  Absent fields have the defaults of SiglipVisionConfig.
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

void read_vision(const JsonFields& file, VisionTransformerConfig& vit) {
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{16, 16});
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(768);
  vit.depth = file.integer("num_hidden_layers").value_or(12);
  vit.num_heads = file.integer("num_attention_heads").value_or(12);
  vit.mlp_hidden = file.integer("intermediate_size").value_or(3072);
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-6);
  vit.act_layer = read_hidden_act(file, "gelu_pytorch_tanh");
  vit.attn_drop_rate = file.number("attention_dropout").value_or(0.0);
  vit.class_token = false;
  vit.pos_interp = {.antialias = false, .offset = 0};
  for (size_t axis = 0; axis < 2; ++axis) {  // so400m/14 at 384: the last 6 pixels are no patch
    if (vit.img_size[axis] % vit.patch_size[axis] != 0) vit.allow_remainder = true;
  }
  const bool has_head = file.boolean("vision_use_head").value_or(true);
  vit.global_pool = has_head ? GlobalPool::map : GlobalPool::none;
  vit.num_classes = 0;
}

// SiglipForImageClassification: a linear layer on the mean of the normalised patches, without the pooling head.
void read_classifier(const JsonFields& file, ModelConfig& config) {
  config.labels = read_labels(file);
  config.vit.num_classes =
      config.labels.empty() ? file.integer("num_labels").value_or(2) : static_cast<int64_t>(config.labels.size());
  config.vit.global_pool = GlobalPool::avg;
  config.vit.fc_norm = false;
}

}  // namespace

bool is_siglip(const std::string& model_type) { return model_type == "siglip" || model_type == "siglip_vision_model"; }

ModelConfig read_siglip_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  const bool nested = file.has("vision_config");
  read_vision(nested ? JsonFields(file.at("vision_config"), file.path("vision_config")) : file, config.vit);
  if (architecture_ends_with(file, "ForImageClassification")) {
    read_classifier(file, config);
  } else if (config.architecture == "siglip") {
    const Json text = file.has("text_config") ? file.at("text_config") : Json::object();
    config.text = read_siglip_text(JsonFields(text, file.path("text_config")));
  }
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, config.vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
