// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of EoMT.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/eomt/config.h"

#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMaxCrops = 64;

int64_t in_range(const JsonFields& file, const char* key, int64_t preset, int64_t first, int64_t last) {
  const int64_t value = file.integer(key).value_or(preset);
  if (value < first || value > last) throw Error(file.path(key), str(first, " to ", last), str(value));
  return value;
}

// The fields are those of the backbone's own model, with other defaults.
VisionTransformerConfig read_eomt_backbone(const JsonFields& file, bool dinov3) {
  Json json = file.object();
  json["model_type"] = dinov3 ? "dinov3_vit" : "dinov2_with_registers";
  const Json defaults{{"hidden_size", 1024},       {"num_hidden_layers", 24}, {"num_attention_heads", 16},
                      {"intermediate_size", 4096}, {"image_size", 640},       {"patch_size", 16},
                      {"num_register_tokens", 4},  {"layer_norm_eps", 1e-6}};
  for (const auto& [key, value] : defaults.items()) {
    if (!file.has(key.c_str())) json[key] = value;
  }
  if (dinov3) {
    const JsonFields rope = file.nested("rope_parameters");
    require_defaults(rope, {{"rope_type", "default"}});
    if (rope.has("rope_theta")) json["rope_theta"] = rope.at("rope_theta");
  }
  VisionTransformerConfig vit = read_huggingface_config(json, Json(), file.where(), "").vit;
  if (vit.img_size[0] != vit.img_size[1])
    throw Error(file.path("image_size"), "a square", str(vit.img_size[0], "×", vit.img_size[1]));
  vit.dynamic_img_size = false;
  vit.allow_remainder = true;
  vit.no_embed_class = true;
  return vit;
}

// EomtImageProcessor's class attributes, where the file has no value.  Without do_split_image images are padded, also
// if do_pad is false: transformers then takes square images alone.
void read_eomt_processor(const std::string& text, const std::string& where, EomtConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  if (const auto type = file.text("image_processor_type"); type && !type->starts_with("Eomt"))
    throw Error(file.path("image_processor_type"), "EomtImageProcessor", "\"" + type->substr(0, 80) + "\"");
  config.split = file.boolean("do_split_image").value_or(false);
  const Json defaults{{"size", {{"shortest_edge", 640}, {"longest_edge", 640}}},
                      {"resample", 2},
                      {"image_mean", {0.485, 0.456, 0.406}},
                      {"image_std", {0.229, 0.224, 0.225}}};
  json.erase("image_processor_type");
  for (const auto& [key, value] : defaults.items()) {
    if (!json.contains(key)) json[key] = value;
  }
  const Json nothing = Json::object();
  Preprocessing& to = config.preprocessing;
  to = read_preprocessor(json, JsonFields(nothing, where), config.backbone, where);
  const int64_t side = config.side();
  const bool longest_fits = config.split ? !to.resize_longest.has_value() : to.resize_longest == side;
  if (to.resize_shortest != side || !longest_fits) {
    throw Error(JsonFields(json, where).path("size"),
                str("shortest_edge ", side, " (image_size) and longest_edge ", config.split ? "null" : str(side),
                    config.split ? " with" : " without", " do_split_image"),
                json["size"].dump());
  }
}

}  // namespace

EomtPlacement place_for_eomt(const EomtConfig& config, int64_t height, int64_t width) {
  EomtPlacement result;
  const int64_t side = config.side(), longer = std::max(height, width), shorter = std::min(height, width);
  const auto unusable = [&](const std::string& expected) {
    throw Error("image", expected + ": crop the image", str(width, "×", height, " pixels"));
  };
  result.vertical = height > width;
  int64_t resized_longer = 0, resized_shorter = 0;
  if (config.split) {
    if (longer / shorter >= kMaxCrops) unusable(str("sides whose ratio is below ", kMaxCrops));
    resized_shorter = side;
    resized_longer = side * longer / shorter;
    const int64_t count = (resized_longer + side - 1) / side;
    // Truncated as there.  The last crop ends at the edge, which a rounded start can miss by a pixel.
    const double step = count > 1 ? static_cast<double>(side) - static_cast<double>(count * side - resized_longer) /
                                                                    static_cast<double>(count - 1)
                                  : 0;
    for (int64_t i = 1; i < count; ++i)
      result.starts.push_back(i + 1 < count ? static_cast<int64_t>(static_cast<double>(i) * step)
                                            : resized_longer - side);
  } else {
    // transformers' get_size_with_aspect_ratio, whose size of the shorter side is rounded and kept if the image has it.
    const auto whole = static_cast<double>(side), high = static_cast<double>(longer),
               low = static_cast<double>(shorter);
    const double raw = whole * low / high;
    resized_shorter = static_cast<int64_t>(std::nearbyint(raw));
    resized_longer = shorter == resized_shorter ? std::min(longer, side)
                     : longer == shorter        ? side
                                                : static_cast<int64_t>(raw * high / low);
    if (resized_shorter < 1) unusable(str("at least a pixel in each direction when the longer side has ", side));
  }
  result.resized = {result.vertical ? resized_longer : resized_shorter,
                    result.vertical ? resized_shorter : resized_longer};
  return result;
}

EomtConfig read_eomt_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                            const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  EomtConfig config;
  config.architecture = file.text("model_type").value_or("");
  const bool dinov3 = config.architecture == "eomt_dinov3";
  if (!dinov3 && config.architecture != "eomt") {
    refuse_unsupported_family(config.architecture, file.path("model_type"));
    throw Error(file.path("model_type"), "eomt or eomt_dinov3", "\"" + config.architecture.substr(0, 80) + "\"");
  }
  config.backbone = read_eomt_backbone(file, dinov3);
  config.num_blocks = in_range(file, "num_blocks", 4, 1, config.backbone.depth);
  config.num_queries = in_range(file, "num_queries", 200, 1, 4096);
  config.num_upscale_blocks = in_range(file, "num_upscale_blocks", 2, 0, 6);
  config.masked.assign(static_cast<size_t>(config.num_blocks), true);
  ModelConfig classes;
  read_classes(file, classes);
  config.num_classes = classes.vit.num_classes;
  config.labels = classes.labels;
  read_eomt_processor(preprocessor, preprocessor_path, config);
  return config;
}

}  // namespace vitrail::models
