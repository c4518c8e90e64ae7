// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dense/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"

namespace vitrail::models {
namespace {

// An image whose input has more patches than this, 28 times those of 518×518 pixels, would exhaust memory.
constexpr int64_t kMaxPatches = 1 << 15;

// The model's own ViT, without a backbone_config.
void read_own_vit(const JsonFields& file, DenseConfig& config) {
  Json vit = file.object();
  vit["model_type"] = "vit";
  if (!file.has("image_size")) vit["image_size"] = 384;
  read_dense_blocks(vit, file.where(), config);
  config.backbone.pos_interp = {.antialias = false, .bilinear = true};
  config.backbone.final_norm = config.final_norm = false;
  config.backbone_key_map = "huggingface_vit";
  config.backbone_name = "dpt";
  config.layers = file.integers("backbone_out_indices").value_or(std::vector<int64_t>{2, 5, 8, 11});
  for (const int64_t layer : config.layers) {
    if (layer < 0 || layer >= config.backbone.depth)
      throw Error(file.path("backbone_out_indices"), str("blocks from 0 to ", config.backbone.depth - 1), str(layer));
  }
  if (!std::ranges::is_sorted(config.layers) || std::ranges::adjacent_find(config.layers) != config.layers.end())
    throw Error(file.path("backbone_out_indices"), "different blocks in ascending order", join(config.layers));
}

DptReadout read_readout(const JsonFields& file) {
  const std::string name = file.text("readout_type").value_or("project");
  if (name == "ignore") return DptReadout::ignore;
  if (name == "add") return DptReadout::add;
  if (name == "project") return DptReadout::project;
  throw Error(file.path("readout_type"), "ignore, add or project", "\"" + name.substr(0, 80) + "\"");
}

// Python's round(): halves to the even integer.
int64_t rounded(double side, int64_t multiple) {
  return static_cast<int64_t>(std::nearbyint(side / static_cast<double>(multiple))) * multiple;
}

}  // namespace

std::vector<int64_t> feature_depths(const JsonFields& backbone, int64_t depth) {
  if (const auto indices = backbone.integers("out_indices")) {
    std::vector<int64_t> depths;
    for (const int64_t index : *indices) depths.push_back(index < 0 ? index + depth + 1 : index);
    return depths;
  }
  if (!backbone.has("out_features")) return {depth};
  std::vector<int64_t> depths;
  for (const Json& item : backbone.at("out_features")) {
    const std::string name = item.is_string() ? item.get<std::string>() : "";
    int64_t stage = name == "stem" ? 0 : -1;
    for (int64_t i = 1; i <= depth; ++i) {
      if (name == "stage" + std::to_string(i)) stage = i;
    }
    depths.push_back(stage);
  }
  return depths;
}

int64_t positive_dim(const JsonFields& file, const char* key, int64_t preset) {
  const int64_t value = file.integer(key).value_or(preset);
  constexpr int64_t kMaxDim = 1 << 16;
  if (value < 1 || value > kMaxDim) throw Error(file.path(key), str("1 to ", kMaxDim), str(value));
  return value;
}

void read_dense_blocks(const Json& json, const std::string& where, DenseConfig& config) {
  VisionTransformerConfig& vit = config.backbone = read_huggingface_config(json, Json(), where, "").vit;
  vit.dynamic_img_size = vit.allow_remainder = true;
  vit.num_classes = 0;
  vit.global_pool = GlobalPool::token;
  vit.fc_norm = false;
}

void read_dense_backbone(const Json& json, const std::string& where, bool beit, DenseConfig& config) {
  const JsonFields backbone(json, where);
  const std::string type = backbone.text("model_type").value_or("");
  const bool is_beit = beit && type == "beit", dinov2 = type == "dinov2" || type == "dinov2_with_registers";
  if (!is_beit && !dinov2) {
    throw Error(backbone.path("model_type"),
                beit ? "beit, dinov2 or dinov2_with_registers" : "dinov2 or dinov2_with_registers",
                "\"" + type.substr(0, 80) + "\"");
  }
  read_dense_blocks(json, where, config);
  if (is_beit) {
    require_defaults(backbone, {{"add_fpn", false}});
    config.backbone_key_map = "huggingface_beit";
    config.backbone.final_norm = config.final_norm = false;
  } else {
    config.final_norm = backbone.boolean("apply_layernorm").value_or(true);
  }
  require_defaults(backbone, {{"reshape_hidden_states", false}});
  const int64_t depth = config.backbone.depth;
  for (const int64_t after : feature_depths(backbone, depth)) {
    if (after < 1 || after > depth)
      throw Error(backbone.path("out_indices"), str("indices of hidden states behind a block, 1 to ", depth),
                  str(after));
    config.layers.push_back(after - 1);
  }
}

void read_dpt_backbone(const JsonFields& file, DenseConfig& config, DptNeckConfig& neck) {
  require_defaults(file, {{"is_hybrid", false}});
  if (file.has("backbone_config")) {
    read_dense_backbone(file.at("backbone_config"), file.path("backbone_config"), true, config);
  } else {
    read_own_vit(file, config);
  }
  neck.dim = config.backbone.embed_dim;
  neck.hidden_dims = {96, 192, 384, 768};
  neck.fusion_dim = 256;
  neck.readout = read_readout(file);
  neck.readout_act = read_hidden_act(file, "gelu");
  neck.doubles = true;
  neck.batch_norm = file.boolean("use_batch_norm_in_fusion_residual").value_or(false);
  neck.residual_bias = file.boolean("use_bias_in_fusion_residual").value_or(!neck.batch_norm);
}

void read_dpt_neck(const JsonFields& file, const DenseConfig& config, DptNeckConfig& neck) {
  JsonFields::assign(neck.hidden_dims, file.integers("neck_hidden_sizes"));
  JsonFields::assign(neck.factors, file.numbers("reassemble_factors"));
  neck.fusion_dim = positive_dim(file, "fusion_hidden_size", neck.fusion_dim);
  const size_t maps = config.layers.size();
  if (neck.hidden_dims.size() != maps || neck.factors.size() != maps || maps == 0) {
    throw Error(file.path("neck_hidden_sizes"),
                str("as many as reassemble_factors (", neck.factors.size(), ") and out_indices (", maps, ")"),
                str(neck.hidden_dims.size()));
  }
  if (neck.dim != config.backbone.embed_dim)
    throw Error(file.path("reassemble_hidden_size"), str("the backbone's hidden_size ", config.backbone.embed_dim),
                str(neck.dim));
  for (const double factor : neck.factors) {
    const double stride = factor < 1 ? 1 / factor : factor;
    if (!(factor > 0 && stride <= 64 && stride == std::floor(stride)))
      throw Error(file.path("reassemble_factors"), "integers up to 64, or their inverses", str(factor));
  }
  for (const int64_t dim : neck.hidden_dims) {
    if (dim < 1 || dim > 1 << 16) throw Error(file.path("neck_hidden_sizes"), "1 to 65536", str(dim));
  }
}

void read_dpt_processor(const std::string& text, const std::string& where, const JsonFields& model,
                        DenseConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto type = file.text(key);
    if (type && !type->starts_with("DPT"))
      throw Error(file.path(key), "DPTImageProcessor", "\"" + type->substr(0, 80) + "\"");
  }
  require_defaults(file, {{"do_pad", false}});
  config.resize.keep_aspect_ratio = file.boolean("keep_aspect_ratio").value_or(false);
  config.resize.multiple = positive_dim(file, "ensure_multiple_of", 1);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) json.erase(key);
  const Json defaults{{"size", {{"height", 384}, {"width", 384}}},
                      {"resample", 3},
                      {"image_mean", {0.5, 0.5, 0.5}},
                      {"image_std", {0.5, 0.5, 0.5}}};
  for (const auto& [key, value] : defaults.items()) {
    if (!file.has(key.c_str())) json[key] = value;
  }
  const Json nothing = Json::object();
  config.preprocessing = read_preprocessor(json, JsonFields(nothing, model.where()), config.backbone, where);
  config.resize.none = !config.preprocessing.resize_to;
  if (config.preprocessing.resize_to) config.resize.size = *config.preprocessing.resize_to;
}

std::array<int64_t, 2> dense_input_size(const DenseConfig& config, int64_t height, int64_t width) {
  const DenseResize& resize = config.resize;
  std::array<int64_t, 2> size{height, width};
  if (!resize.none) {
    const auto tall = static_cast<double>(height), wide = static_cast<double>(width);
    double down = static_cast<double>(resize.size[0]) / tall, across = static_cast<double>(resize.size[1]) / wide;
    if (resize.keep_aspect_ratio && resize.covers) {
      down = across = std::max(down, across);
    } else if (resize.keep_aspect_ratio) {
      down = across = std::abs(1 - across) < std::abs(1 - down) ? across : down;
    }
    size = {rounded(down * tall, resize.multiple), rounded(across * wide, resize.multiple)};
  }
  const auto& patch = config.backbone.patch_size;
  const int64_t rows = size[0] / patch[0], columns = size[1] / patch[1];
  if (rows < 1 || columns < 1 || rows > kMaxPatches / columns) {
    throw Error("image",
                str("one of 1 to ", kMaxPatches, " patches of ", patch[0], "×", patch[1],
                    " at the model's input: crop the image"),
                str(width, "×", height, " pixels, at the input ", size[1], "×", size[0]));
  }
  return size;
}

}  // namespace vitrail::models
