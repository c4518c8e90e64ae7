// SPDX-License-Identifier: Apache-2.0
// Hugging Face transformers' config.json of BEiT and data2vec-vision.  Absent fields have the defaults of BeitConfig.
#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"

namespace vitrail::models {
namespace {

// transformers resamples the tables of an image that is not square as if its sides were exchanged.
void check_square(const JsonFields& file, const VisionTransformerConfig& vit) {
  if (vit.img_size[0] == vit.img_size[1] && vit.patch_size[0] == vit.patch_size[1]) return;
  throw Error(file.path("image_size"), "a square image and square patches",
              str(vit.img_size[0], "×", vit.img_size[1], " and ", vit.patch_size[0], "×", vit.patch_size[1]));
}

void read_encoder(const JsonFields& file, VisionTransformerConfig& vit) {
  vit.img_size = file.size("image_size").value_or(std::array<int64_t, 2>{224, 224});
  vit.patch_size = file.size("patch_size").value_or(std::array<int64_t, 2>{16, 16});
  check_square(file, vit);
  vit.in_chans = file.integer("num_channels").value_or(3);
  vit.embed_dim = file.integer("hidden_size").value_or(768);
  vit.depth = file.integer("num_hidden_layers").value_or(12);
  vit.num_heads = file.integer("num_attention_heads").value_or(12);
  vit.mlp_hidden = file.integer("intermediate_size").value_or(3072);
  vit.norm_eps = file.number("layer_norm_eps").value_or(1e-12);
  vit.act_layer = read_hidden_act(file, "gelu");
  vit.attn_type = AttentionType::eva;
  const double scale = file.number("layer_scale_init_value").value_or(0.1);
  if (scale > 0) vit.init_values = scale;
  vit.attn_drop_rate = file.number("attention_probs_dropout_prob").value_or(0.0);
  vit.proj_drop_rate = vit.pos_drop_rate = file.number("hidden_dropout_prob").value_or(0.0);
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.1);
  const bool absolute = file.boolean("use_absolute_position_embeddings").value_or(false);
  vit.pos_embed = absolute ? PositionEmbedding::learned : PositionEmbedding::none;
  vit.pos_interp = {.antialias = false, .offset = 0};
  vit.use_rel_pos_bias = file.boolean("use_relative_position_bias").value_or(false);
  vit.use_shared_rel_pos_bias = file.boolean("use_shared_relative_position_bias").value_or(false);
  vit.rel_pos_interp = nn::RelativePositionResampling::bilinear;
  vit.dynamic_img_size = true;
  vit.num_classes = 0;
}

// The mean of the patches before a norm, or the class token after it.  Masked image models have a norm on all tokens,
// and Data2VecVisionModel has none.
void read_pooling(const JsonFields& file, VisionTransformerConfig& vit) {
  const bool mean = file.boolean("use_mean_pooling").value_or(true);
  vit.global_pool = mean ? GlobalPool::avg : GlobalPool::token;
  vit.fc_norm = mean && !architecture_ends_with(file, "ForMaskedImageModeling");
  if (mean && architecture_ends_with(file, "Data2VecVisionModel")) vit.final_norm = false;
}

void read_classifier(const JsonFields& file, ModelConfig& config) {
  config.labels = read_labels(file);
  config.vit.num_classes =
      config.labels.empty() ? file.integer("num_labels").value_or(2) : static_cast<int64_t>(config.labels.size());
}

}  // namespace

bool is_beit(const std::string& model_type) { return model_type == "beit" || model_type == "data2vec-vision"; }

ModelConfig read_beit_config(const Json& json, const Json& preprocessor, const std::string& where) {
  const JsonFields file(json, where);
  ModelConfig config;
  config.architecture = *file.text("model_type");
  read_encoder(file, config.vit);
  read_pooling(file, config.vit);
  if (architecture_ends_with(file, "ForImageClassification")) read_classifier(file, config);
  if (!preprocessor.is_null()) {
    config.preprocessing = read_preprocessor(preprocessor, config.vit, where + " (preprocessor_config.json)");
  }
  return config;
}

}  // namespace vitrail::models
