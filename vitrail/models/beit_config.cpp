// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of BEiT and data2vec-vision.
#include "vitrail/base/error.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

// transformers resamples the tables of an image that is not square as if its sides were exchanged.
void check_square(const JsonFields& file, const VisionTransformerConfig& vit) {
  if (vit.img_size[0] == vit.img_size[1] && vit.patch_size[0] == vit.patch_size[1]) return;
  throw Error(file.path("image_size"), "a square image and square patches",
              str(vit.img_size[0], "×", vit.img_size[1], " and ", vit.patch_size[0], "×", vit.patch_size[1]));
}

void read_positions(const JsonFields& file, VisionTransformerConfig& vit) {
  const bool absolute = file.boolean("use_absolute_position_embeddings").value_or(false);
  vit.pos_embed = absolute ? PositionEmbedding::learned : PositionEmbedding::none;
  vit.use_rel_pos_bias = file.boolean("use_relative_position_bias").value_or(false);
  vit.use_shared_rel_pos_bias = file.boolean("use_shared_relative_position_bias").value_or(false);
  vit.rel_pos_interp = nn::RelativePositionResampling::bilinear;
  vit.dynamic_img_size = true;
}

// The mean of the patches before a norm, or the class token after it.  Masked image models have a norm on all tokens,
// and Data2VecVisionModel has none.
void read_pooling(const JsonFields& file, VisionTransformerConfig& vit) {
  const bool mean = file.boolean("use_mean_pooling").value_or(true);
  vit.global_pool = mean ? GlobalPool::avg : GlobalPool::token;
  vit.fc_norm = mean && !architecture_ends_with(file, "ForMaskedImageModeling");
  if (mean && architecture_ends_with(file, "Data2VecVisionModel")) vit.final_norm = false;
}

}  // namespace

void read_beit_config(const JsonFields& file, ModelConfig& config) {
  VisionTransformerConfig& vit = config.vit;
  read_encoder(file, {.norm_eps = 1e-12}, vit);
  check_square(file, vit);
  vit.attn_type = AttentionType::eva;
  const double scale = file.number("layer_scale_init_value").value_or(0.1);
  if (scale > 0) vit.init_values = scale;
  vit.drop_path_rate = file.number("drop_path_rate").value_or(0.1);
  read_positions(file, vit);
  read_pooling(file, vit);
  if (architecture_ends_with(file, "ForImageClassification")) read_classes(file, config);
}

}  // namespace vitrail::models
