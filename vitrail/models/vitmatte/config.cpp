// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of ViTMatte.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/vitmatte/config.h"

#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/round_up_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/json_fields_internal.h"

namespace vitrail::models {
namespace {

// The maps of the decoder take about 500 bytes a pixel of the padded input.
constexpr int64_t kMaxMattingPixels = int64_t{1} << 23;

int64_t above_zero(const JsonFields& file, const char* key, int64_t preset) {
  const int64_t value = file.integer(key).value_or(preset);
  constexpr int64_t kMax = 1 << 16;
  if (value < 1 || value > kMax) throw Error(file.path(key), str("1 to ", kMax), str(value));
  return value;
}

// A side of a square.
int64_t side_of(const JsonFields& file, const char* key, int64_t preset) {
  const std::array<int64_t, 2> size = file.size(key).value_or(std::array{preset, preset});
  if (size[0] != size[1] || size[0] < 1 || size[0] > kMaxPixels)
    throw Error(file.path(key), str("a square of at most ", kMaxPixels, " pixels a side"), str(size[0], "×", size[1]));
  return size[0];
}

std::set<int64_t> block_indices(const JsonFields& backbone, const char* key, int64_t depth) {
  const std::vector<int64_t> blocks = backbone.integers(key).value_or(std::vector<int64_t>{});
  for (const int64_t block : blocks) {
    if (block < 0 || block >= depth) throw Error(backbone.path(key), str("blocks from 0 to ", depth - 1), str(block));
  }
  return {blocks.begin(), blocks.end()};
}

// The decoder reads the map behind the last block.
void require_last_feature(const JsonFields& backbone, int64_t depth) {
  require_defaults(backbone, {{"out_features", Json::array({"stage" + std::to_string(depth)})}});
  const std::vector<int64_t> indices = backbone.integers("out_indices").value_or(std::vector<int64_t>{depth});
  if (indices != std::vector{depth} && indices != std::vector<int64_t>{-1})
    throw Error(backbone.path("out_indices"), str("the last block, ", depth), join(indices));
}

void read_vitdet(const JsonFields& backbone, VitMatteConfig& config) {
  const std::string type = backbone.text("model_type").value_or("");
  if (type != "vitdet") throw Error(backbone.path("model_type"), "vitdet", "\"" + type.substr(0, 80) + "\"");
  require_defaults(backbone, {{"use_absolute_position_embeddings", true}, {"hidden_act", "gelu"}, {"num_channels", 4}});
  if (!backbone.boolean("use_relative_position_embeddings").value_or(false))
    throw Error(backbone.path("use_relative_position_embeddings"), "true", "false");
  SamEncoderConfig& vit = config.backbone;
  vit.dim = above_zero(backbone, "hidden_size", 768);
  vit.num_heads = above_zero(backbone, "num_attention_heads", 12);
  if (vit.dim % vit.num_heads != 0)
    throw Error(backbone.path("num_attention_heads"), str("a divisor of hidden_size ", vit.dim), str(vit.num_heads));
  vit.head_dim = vit.dim / vit.num_heads;
  const double ratio = backbone.number("mlp_ratio").value_or(4);
  if (!(ratio > 0 && ratio <= 64)) throw Error(backbone.path("mlp_ratio"), "a number above 0, at most 64", str(ratio));
  vit.mlp_hidden = static_cast<int64_t>(static_cast<double>(vit.dim) * ratio);
  vit.qkv_bias = backbone.boolean("qkv_bias").value_or(true);
  JsonFields::assign(vit.norm_eps, backbone.number("layer_norm_eps"));
  vit.patch_size = side_of(backbone, "patch_size", 16);
  vit.grid = side_of(backbone, "pretrain_image_size", 224) / vit.patch_size;
  const int64_t grid = side_of(backbone, "image_size", 224) / vit.patch_size;
  if (vit.grid < 1 || grid < 1) throw Error(backbone.path("patch_size"), "at most image_size", str(vit.patch_size));
  const int64_t depth = above_zero(backbone, "num_hidden_layers", 12);
  const std::set<int64_t> windowed = block_indices(backbone, "window_block_indices", depth);
  const int64_t window = backbone.integer("window_size").value_or(0);
  if (!windowed.empty() && (window < 1 || window > 1024))
    throw Error(backbone.path("window_size"), "1 to 1024, because of window_block_indices", str(window));
  for (int64_t i = 0; i < depth; ++i) {
    const int64_t cells = windowed.contains(i) ? window : 0;
    vit.blocks.push_back({.window = cells, .table_length = 2 * (cells > 0 ? cells : grid) - 1});
  }
  const std::set<int64_t> residual = block_indices(backbone, "residual_block_indices", depth);
  config.residual_blocks.assign(residual.begin(), residual.end());
  require_last_feature(backbone, depth);
}

// A convolution for each halving of the input down to the patches, and a fusion for each doubling up to it.
void read_decoder(const JsonFields& file, VitMatteConfig& config) {
  JsonFields::assign(config.stream_dims, file.integers("convstream_hidden_sizes"));
  JsonFields::assign(config.fusion_dims, file.integers("fusion_hidden_sizes"));
  JsonFields::assign(config.batch_norm_eps, file.number("batch_norm_eps"));
  const size_t fusions = config.fusion_dims.size();
  if (fusions < 1 || fusions > 10 || int64_t{1} << fusions != config.backbone.patch_size)
    throw Error(file.path("fusion_hidden_sizes"),
                str("a size for each halving of a patch of ", config.backbone.patch_size, " pixels"), str(fusions));
  if (config.stream_dims.size() + 1 != fusions)
    throw Error(file.path("convstream_hidden_sizes"), str(fusions - 1, " sizes"), str(config.stream_dims.size()));
  for (const auto& [key, sizes] :
       {std::pair{"convstream_hidden_sizes", &config.stream_dims}, {"fusion_hidden_sizes", &config.fusion_dims}}) {
    for (const int64_t dim : *sizes) {
      if (dim < 1 || dim > 1 << 16) throw Error(file.path(key), "1 to 65536", str(dim));
    }
  }
  if (file.integer("hidden_size").value_or(384) != config.backbone.dim)
    throw Error(file.path("hidden_size"), str("the backbone's ", config.backbone.dim),
                str(file.integer("hidden_size").value_or(384)));
}

// VitMatteImageProcessor's class attributes, where the file has no value.
void read_matting_processor(const std::string& text, const std::string& where, VitMatteConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto type = file.text(key);
    if (type && !type->starts_with("VitMatte"))
      throw Error(file.path(key), "VitMatteImageProcessor", "\"" + type->substr(0, 80) + "\"");
  }
  require_defaults(file, {{"do_pad", true}});
  const int64_t patch = config.backbone.patch_size;
  const char* const key = file.has("size_divisor") ? "size_divisor" : "size_divisibility";
  config.size_divisor = above_zero(file, key, 32);
  if (config.size_divisor % patch != 0)
    throw Error(file.path(key), str("a multiple of the patch size ", patch), str(config.size_divisor));
  for (const char* type : {"image_processor_type", "feature_extractor_type"}) json.erase(type);
  json["do_resize"] = false;
  for (const char* statistic : {"image_mean", "image_std"}) {
    if (!file.has(statistic)) json[statistic] = {0.5, 0.5, 0.5};
  }
  const Json nothing = Json::object();
  config.preprocessing = read_preprocessor(json, JsonFields(nothing, where), {}, where);
}

}  // namespace

std::array<int64_t, 2> padded_for_matting(const VitMatteConfig& config, int64_t height, int64_t width) {
  const int64_t divisor = config.size_divisor;
  const std::array padded{round_up(height, divisor), round_up(width, divisor)};
  if (padded[0] > kMaxMattingPixels / padded[1])
    throw Error("image", str("at most ", kMaxMattingPixels, " pixels for matting: make image and trimap smaller"),
                str(width, "×", height));
  return padded;
}

VitMatteConfig read_vitmatte_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                                    const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  const std::string type = file.text("model_type").value_or("");
  if (type != "vitmatte") throw Error(file.path("model_type"), "vitmatte", "\"" + type.substr(0, 80) + "\"");
  VitMatteConfig config;
  if (!file.has("backbone_config")) throw Error(file.path("backbone_config"), "the configuration of a vitdet", "none");
  read_vitdet(file.nested("backbone_config"), config);
  read_decoder(file, config);
  read_matting_processor(preprocessor, preprocessor_path, config);
  return config;
}

}  // namespace vitrail::models
