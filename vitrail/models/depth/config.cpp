// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of Depth Anything.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/depth/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/models/model_config.h"

namespace vitrail::models {
namespace {

// An image whose input has more patches than this, 28 times those of 518×518 pixels, would exhaust memory.
constexpr int64_t kMaxPatches = 1 << 15;

const Json& default_backbone() {
  static const Json json{{"model_type", "dinov2"},
                         {"image_size", 518},
                         {"hidden_size", 384},
                         {"num_attention_heads", 6},
                         {"out_indices", {9, 10, 11, 12}}};
  return json;
}

// The number of blocks before each feature map: "stem" or 0 are the embeddings, "stage 3" or 3 follow three blocks.
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

void read_backbone(const Json& json, const std::string& where, DepthConfig& config) {
  const JsonFields backbone(json, where);
  const std::string type = backbone.text("model_type").value_or("");
  if (type != "dinov2" && type != "dinov2_with_registers")
    throw Error(backbone.path("model_type"), "dinov2 or dinov2_with_registers", "\"" + type.substr(0, 80) + "\"");
  config.backbone = read_huggingface_config(json, Json(), where, "").vit;
  config.backbone.allow_remainder = true;
  config.backbone.num_classes = 0;
  config.final_norm = backbone.boolean("apply_layernorm").value_or(true);
  require_defaults(backbone, {{"reshape_hidden_states", false}});
  const int64_t depth = config.backbone.depth;
  for (const int64_t after : feature_depths(backbone, depth)) {
    if (after < 1 || after > depth)
      throw Error(backbone.path("out_indices"), str("indices of hidden states behind a block, 1 to ", depth),
                  str(after));
    config.layers.push_back(after - 1);
  }
}

int64_t positive(const JsonFields& file, const char* key, int64_t preset) {
  const int64_t value = file.integer(key).value_or(preset);
  constexpr int64_t kMaxDim = 1 << 16;
  if (value < 1 || value > kMaxDim) throw Error(file.path(key), str("1 to ", kMaxDim), str(value));
  return value;
}

void read_neck(const JsonFields& file, DepthConfig& config) {
  DptNeckConfig& neck = config.neck;
  neck.dim = positive(file, "reassemble_hidden_size", neck.dim);
  JsonFields::assign(neck.hidden_dims, file.integers("neck_hidden_sizes"));
  JsonFields::assign(neck.factors, file.numbers("reassemble_factors"));
  neck.fusion_dim = positive(file, "fusion_hidden_size", neck.fusion_dim);
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

void read_head(const JsonFields& file, DepthConfig& config) {
  require_defaults(file, {{"head_in_index", -1}});
  config.head_dim = positive(file, "head_hidden_size", config.head_dim);
  const std::string kind = file.text("depth_estimation_type").value_or("relative");
  if (kind != "relative" && kind != "metric")
    throw Error(file.path("depth_estimation_type"), "relative or metric", "\"" + kind.substr(0, 80) + "\"");
  config.metric = kind == "metric";
  if (config.metric && !file.has("max_depth"))
    throw Error(file.path("max_depth"), "the largest depth in metres, which a metric model needs", "none");
  config.max_depth = file.number("max_depth").value_or(1.0);
  if (!(config.max_depth > 0 && config.max_depth <= 1e6))
    throw Error(file.path("max_depth"), "a number above 0, at most 1000000", str(config.max_depth));
}

// DPTImageProcessor's class attributes, where the file has no value.
void read_processor(const std::string& text, const std::string& where, const JsonFields& model, DepthConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto type = file.text(key);
    if (type && !type->starts_with("DPT"))
      throw Error(file.path(key), "DPTImageProcessor", "\"" + type->substr(0, 80) + "\"");
  }
  require_defaults(file, {{"do_pad", false}});
  config.resize.keep_aspect_ratio = file.boolean("keep_aspect_ratio").value_or(false);
  config.resize.multiple = positive(file, "ensure_multiple_of", 1);
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

// Python's round(): halves to the even integer.
int64_t rounded(double side, int64_t multiple) {
  return static_cast<int64_t>(std::nearbyint(side / static_cast<double>(multiple))) * multiple;
}

}  // namespace

std::array<int64_t, 2> resized_for_depth(const DepthConfig& config, int64_t height, int64_t width) {
  const DepthResize& resize = config.resize;
  std::array<int64_t, 2> size{height, width};
  if (!resize.none) {
    const auto tall = static_cast<double>(height), wide = static_cast<double>(width);
    double down = static_cast<double>(resize.size[0]) / tall, across = static_cast<double>(resize.size[1]) / wide;
    if (resize.keep_aspect_ratio) down = across = std::abs(1 - across) < std::abs(1 - down) ? across : down;
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

DepthConfig read_depth_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  DepthConfig config;
  const Json& backbone = file.has("backbone_config") ? file.at("backbone_config") : default_backbone();
  read_backbone(backbone, file.path("backbone_config"), config);
  const int64_t patch = positive(file, "patch_size", 14);
  if (config.backbone.patch_size != std::array{patch, patch})
    throw Error(file.path("patch_size"), str("the backbone's ", config.backbone.patch_size[0]), str(patch));
  read_neck(file, config);
  read_head(file, config);
  read_processor(preprocessor, preprocessor_path, file, config);
  return config;
}

}  // namespace vitrail::models
