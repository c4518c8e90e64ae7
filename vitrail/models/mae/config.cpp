// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of ViTMAE.  Absent fields have the defaults of its configuration class.
#include "vitrail/models/mae/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/derived_config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/mae/patch_masks.h"
#include "vitrail/models/model_args_internal.h"
#include "vitrail/models/tensor_extents_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMaxDecoderDepth = 4096;

int64_t mae_blocks(const weights::Checkpoint& checkpoint, const std::string& list) {
  int64_t count = 0;
  while (checkpoint.has(str(list, ".", count, ".norm1.weight"))) ++count;
  return count;
}

// The heads of the authors' encoders; 0: another width.
int64_t authors_heads(int64_t dim) { return dim == 768 ? 12 : dim == 1024 || dim == 1280 ? 16 : 0; }

// The name that read_hidden_act() reads.
std::string mae_hidden_act(const VisionTransformerConfig& config) {
  const bool tanh = config.act_layer == kernels::Activation::gelu_tanh;
  return tanh ? "gelu_pytorch_tanh" : kernels::name_of(config.act_layer);
}

Json side_or_sides(const std::array<int64_t, 2>& size) { return size[0] == size[1] ? Json(size[0]) : Json(size); }

// Fields that change neither the parameters nor the features of images of the model's own size.
bool is_harmless(const std::string& field) {
  static const std::vector<std::string> kNames{"global_pool", "fc_norm",          "pos_interp",     "mlp_ratio",
                                               "mlp_hidden",  "dynamic_img_size", "allow_remainder"};
  return std::ranges::find(kNames, field) != kNames.end() || field == "weight_init" || field.ends_with("drop_rate") ||
         field == "drop_path_rate";
}

// Throws Error for an encoder that is another one when transformers' configuration of it is read.
void check_expressible(const VisionTransformerConfig& encoder, const Json& json) {
  const ModelConfig read = read_huggingface_config(json, Json(), "config.json", "");
  std::vector<std::string> names;
  const Json differences = write_model_args(encoder, read.vit);
  for (const auto& item : differences.items()) {
    if (!is_harmless(item.key())) names.push_back(item.key());
  }
  if (names.empty()) return;
  throw Error("ViTMAEForPreTraining", "an encoder that its configuration can express", "another " + join(names));
}

}  // namespace

const MaskedAutoencoderConfig& checked(const MaskedAutoencoderConfig& config) {
  const auto check = [](const char* field, bool valid, const std::string& expected, const std::string& got) {
    if (!valid) throw Error(field, expected, got);
  };
  const VisionTransformerConfig& vit = checked(config.encoder);
  const bool fc_norm = vit.fc_norm.value_or(vit.global_pool == GlobalPool::avg);
  check("num_classes", vit.num_classes == 0, "an encoder without a head (0)", str(vit.num_classes));
  check("fc_norm", vit.final_norm && !fc_norm, "an encoder with a norm in front of the pooling",
        fc_norm ? "one behind it" : "none");
  check("global_pool", vit.global_pool != GlobalPool::map, "an encoder without attention pooling", "map");
  check("use_rel_pos_bias", !vit.use_rel_pos_bias && !vit.use_shared_rel_pos_bias,
        "an encoder without a relative position bias, which is for all patches", "one");
  constexpr int64_t kMaxDim = 1 << 16;
  const int64_t dim = config.decoder_dim, heads = config.decoder_heads, hidden = config.decoder_mlp_hidden;
  check("decoder_dim", dim > 0 && dim <= kMaxDim && dim % 4 == 0, str("a multiple of 4 up to ", kMaxDim), str(dim));
  check("decoder_depth", config.decoder_depth >= 0 && config.decoder_depth <= kMaxDecoderDepth,
        str("0 to ", kMaxDecoderDepth), str(config.decoder_depth));
  check("decoder_heads", heads > 0 && dim % heads == 0, str("a divisor of the width ", dim), str(heads));
  check("decoder_mlp_hidden", hidden > 0 && hidden <= 16 * kMaxDim, str("1 to ", 16 * kMaxDim), str(hidden));
  const std::array<int64_t, 2> grid = own_grid(vit);
  num_kept_patches(grid[0] * grid[1], config.mask_ratio);
  return config;
}

VisionTransformerConfig decoder_blocks_of(const MaskedAutoencoderConfig& config) {
  VisionTransformerConfig blocks;
  blocks.img_size = config.encoder.img_size;
  blocks.patch_size = config.encoder.patch_size;
  blocks.embed_dim = config.decoder_dim;
  blocks.depth = config.decoder_depth;
  blocks.num_heads = config.decoder_heads;
  blocks.mlp_hidden = config.decoder_mlp_hidden;
  blocks.qkv_bias = config.encoder.qkv_bias;
  blocks.norm_eps = config.encoder.norm_eps;
  blocks.act_layer = config.encoder.act_layer;
  blocks.pos_interp = config.encoder.pos_interp;
  return blocks;
}

MaskedAutoencoderConfig read_mae_config(const std::string& text, const std::string& path,
                                        const std::string& preprocessor, const std::string& preprocessor_path) {
  const Json json = parse_json(text, path),
             steps = preprocessor.empty() ? Json() : parse_json(preprocessor, preprocessor_path);
  const JsonFields file(json, path);
  const std::string type = file.text("model_type").value_or("");
  if (type != "vit_mae") throw Error(file.path("model_type"), "vit_mae", "\"" + type.substr(0, 80) + "\"");
  const ModelConfig encoder = read_huggingface_config(json, steps, path, preprocessor_path);
  MaskedAutoencoderConfig config{.encoder = encoder.vit, .preprocessing = encoder.preprocessing};
  config.decoder_dim = positive_dim(file, "decoder_hidden_size", config.decoder_dim);
  config.decoder_heads = positive_dim(file, "decoder_num_attention_heads", config.decoder_heads);
  config.decoder_mlp_hidden = positive_dim(file, "decoder_intermediate_size", config.decoder_mlp_hidden);
  JsonFields::assign(config.decoder_depth, file.integer("decoder_num_hidden_layers"));
  JsonFields::assign(config.mask_ratio, file.number("mask_ratio"));
  JsonFields::assign(config.norm_pix, file.boolean("norm_pix_loss"));
  return checked(config);
}

MaskedAutoencoderConfig mae_config_of_file(const weights::Checkpoint& checkpoint) {
  const auto of = [&](const std::string& name, int axis) { return extent_of(checkpoint, name, axis); };
  MaskedAutoencoderConfig config;
  VisionTransformerConfig& vit = config.encoder;
  vit.embed_dim = of("pos_embed", 2);
  vit.num_heads = authors_heads(vit.embed_dim);
  vit.depth = mae_blocks(checkpoint, "blocks");
  vit.in_chans = of("patch_embed.proj.weight", 1);
  vit.num_classes = 0;
  const int64_t patch = of("patch_embed.proj.weight", 2), patches = of("pos_embed", 1) - 1;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(std::max<int64_t>(patches, 0)))));
  if (vit.num_heads == 0 || side * side != patches || of("decoder_embed.weight", 0) % 16 != 0) {
    throw Error(checkpoint.path(),
                "a masked autoencoder of 768, 1024 or 1280 features for square images, with 16 heads in the decoder; "
                "or a config.json of transformers beside the file",
                str(vit.embed_dim, " features and ", patches, " patches, ", of("decoder_embed.weight", 0),
                    " features in the decoder"));
  }
  vit.patch_size = {patch, patch};
  vit.img_size = {side * patch, side * patch};
  config.decoder_dim = of("decoder_embed.weight", 0);
  config.decoder_depth = mae_blocks(checkpoint, "decoder_blocks");
  config.decoder_mlp_hidden = of("decoder_blocks.0.mlp.fc1.weight", 0);
  Preprocessing& steps = config.preprocessing;
  steps.rule = ResizeRule::huggingface;
  steps.resize_to = steps.input_size = vit.img_size;
  steps.interpolation = "bicubic";
  steps.mean = {0.485, 0.456, 0.406};
  steps.std = {0.229, 0.224, 0.225};
  return checked(config);
}

std::string write_mae_config(const MaskedAutoencoderConfig& config) {
  const VisionTransformerConfig& vit = config.encoder;
  const Json json{{"architectures", {"ViTMAEForPreTraining"}},
                  {"model_type", "vit_mae"},
                  {"image_size", side_or_sides(vit.img_size)},
                  {"patch_size", side_or_sides(vit.patch_size)},
                  {"num_channels", vit.in_chans},
                  {"hidden_size", vit.embed_dim},
                  {"num_hidden_layers", vit.depth},
                  {"num_attention_heads", vit.num_heads},
                  {"intermediate_size", mlp_hidden_of(vit)},
                  {"hidden_act", mae_hidden_act(vit)},
                  {"layer_norm_eps", vit.norm_eps},
                  {"qkv_bias", vit.qkv_bias},
                  {"decoder_hidden_size", config.decoder_dim},
                  {"decoder_num_hidden_layers", config.decoder_depth},
                  {"decoder_num_attention_heads", config.decoder_heads},
                  {"decoder_intermediate_size", config.decoder_mlp_hidden},
                  {"mask_ratio", config.mask_ratio},
                  {"norm_pix_loss", config.norm_pix}};
  check_expressible(vit, json);
  return json.dump(2) + "\n";
}

std::string write_mae_processor(const MaskedAutoencoderConfig& config) {
  Preprocessing steps = config.preprocessing;
  if (steps.rule == ResizeRule::timm) {
    steps.rule = ResizeRule::huggingface;
    steps.resize_to = config.encoder.img_size;
  }
  return write_preprocessor_config(steps);
}

}  // namespace vitrail::models
