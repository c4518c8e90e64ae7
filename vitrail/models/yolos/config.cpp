// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of YOLOS.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/yolos/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/layer_configs_internal.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kLongestEdge = 1333;
constexpr int64_t kMaxDetectionTokens = 4096;
// An image whose input has more patches than this, 8 times those of 800×1333 pixels, would exhaust memory.
constexpr int64_t kMaxYolosPatches = 1 << 15;

VisionTransformerConfig read_yolos_blocks(const JsonFields& file) {
  Json vit = file.object();
  vit["model_type"] = "vit";
  if (!file.has("image_size")) vit["image_size"] = {512, 864};
  DenseConfig dense;
  read_dense_blocks(vit, file.where(), dense);
  return dense.backbone;
}

// YolosImageProcessor's class attributes, where the file has no value.
void read_yolos_processor(const std::string& text, const std::string& where, YolosConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    if (const auto type = file.text(key); type && !type->starts_with("Yolos"))
      throw Error(file.path(key), "YolosImageProcessor", "\"" + type->substr(0, 80) + "\"");
    json.erase(key);
  }
  const Json defaults{{"size", {{"shortest_edge", 800}, {"longest_edge", kLongestEdge}}},
                      {"resample", 2},
                      {"image_mean", {0.485, 0.456, 0.406}},
                      {"image_std", {0.229, 0.224, 0.225}}};
  for (const auto& [key, value] : defaults.items()) {
    if (!file.has(key.c_str())) json[key] = value;
  }
  if (file.at("size").is_number()) {
    const int64_t longest = file.integer("max_size").value_or(kLongestEdge);
    json["size"] = {{"shortest_edge", *file.integer("size")}, {"longest_edge", longest}};
  }
  const Json nothing = Json::object();
  config.preprocessing = read_preprocessor(json, JsonFields(nothing, where), config.backbone, where);
  if (config.preprocessing.resize_shortest && !config.preprocessing.resize_longest)
    throw Error(file.path("size"), "longest_edge beside shortest_edge", json["size"].dump());
}

}  // namespace

std::array<int64_t, 2> YolosConfig::nominal_size() const {
  const std::array<int64_t, 2> grid = own_grid(backbone);
  return {grid[0] * backbone.patch_size[0], grid[1] * backbone.patch_size[1]};
}

// transformers' get_size_with_aspect_ratio_yolos.  Only an image that is not upright keeps its size if its shorter edge
// has the right one, which differs where that is rounded.
std::array<int64_t, 2> yolos_input_size(const YolosConfig& config, int64_t height, int64_t width) {
  const Preprocessing& steps = config.preprocessing;
  std::array<int64_t, 2> size{height, width};
  if (steps.resize_to) {
    size = *steps.resize_to;
  } else if (steps.resize_shortest) {
    constexpr int64_t kMultiple = 16;
    const bool upright = width < height;
    const int64_t low = std::min(height, width), high = std::max(height, width);
    auto exact = static_cast<double>(*steps.resize_shortest);
    int64_t shorter = *steps.resize_shortest;
    const auto longest = static_cast<double>(*steps.resize_longest);
    if (static_cast<double>(high) / static_cast<double>(low) * exact > longest) {
      exact = longest * static_cast<double>(low) / static_cast<double>(high);
      shorter = static_cast<int64_t>(std::nearbyint(exact));
    }
    int64_t longer = high;
    if (upright || low != shorter)
      longer = static_cast<int64_t>(exact * static_cast<double>(high) / static_cast<double>(low));
    shorter -= shorter % kMultiple;
    longer -= longer % kMultiple;
    size = upright ? std::array{longer, shorter} : std::array{shorter, longer};
  }
  const auto& patch = config.backbone.patch_size;
  if (size[0] < patch[0] || size[1] < patch[1]) {
    throw Error("image", str("at least ", patch[0], "×", patch[1], " pixels at the model's input: crop the image"),
                str(width, "×", height, " pixels, ", size[1], "×", size[0], " there"));
  }
  if (size[0] / patch[0] * (size[1] / patch[1]) > kMaxYolosPatches) {
    throw Error("image", str("at most ", kMaxYolosPatches, " patches at the model's input"),
                str(size[1], "×", size[0], " pixels there"));
  }
  return size;
}

YolosConfig read_yolos_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  YolosConfig config;
  config.architecture = file.text("model_type").value_or("");
  if (config.architecture != "yolos") {
    refuse_unsupported_family(config.architecture, file.path("model_type"));
    throw Error(file.path("model_type"), "yolos", "\"" + config.architecture.substr(0, 80) + "\"");
  }
  config.backbone = read_yolos_blocks(file);
  config.num_detection_tokens = positive_dim(file, "num_detection_tokens", 100);
  if (config.num_detection_tokens > kMaxDetectionTokens)
    throw Error(file.path("num_detection_tokens"), str("1 to ", kMaxDetectionTokens), str(config.num_detection_tokens));
  config.mid_positions = file.boolean("use_mid_position_embeddings").value_or(true);
  config.labels = class_names_of(file);
  read_yolos_processor(preprocessor, preprocessor_path, config);
  return config;
}

}  // namespace vitrail::models
