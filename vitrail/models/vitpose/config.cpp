// SPDX-License-Identifier: Apache-2.0
// transformers' config.json of ViTPose.  Absent fields have the defaults of its configuration classes.
#include "vitrail/models/vitpose/config.h"

#include <algorithm>
#include <cctype>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/models/config_formats_internal.h"
#include "vitrail/models/dense/config_internal.h"
#include "vitrail/models/huggingface_config_internal.h"
#include "vitrail/models/vitpose/coco_person_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kMaxExperts = 64;
constexpr int64_t kPatchPadding = 2;

struct SidedName {
  BodySide side = BodySide::none;
  std::string counterpart;  // the name on the other side
};

// A word of the name says the side.
SidedName sided(const std::string& name) {
  const auto is_letter = [&](size_t at) {
    return at < name.size() && std::isalpha(static_cast<unsigned char>(name[at]));
  };
  for (const auto& [left, right] :
       {std::pair<std::string, std::string>{"left", "right"}, {"Left", "Right"}, {"L", "R"}}) {
    for (const bool is_left : {true, false}) {
      const std::string &own = is_left ? left : right, &other = is_left ? right : left;
      const size_t at = name.find(own);
      if (at == name.npos || (at > 0 && is_letter(at - 1)) || is_letter(at + own.size())) continue;
      return {is_left ? BodySide::left : BodySide::right, std::string(name).replace(at, own.size(), other)};
    }
  }
  return {BodySide::none, name};
}

// The decoder reads the map behind the last block.
void require_last_feature_map(const JsonFields& backbone, int64_t depth) {
  require_defaults(backbone, {{"out_features", Json::array({"stage" + std::to_string(depth)})}});
  const std::vector<int64_t> indices = backbone.integers("out_indices").value_or(std::vector<int64_t>{depth});
  if (indices.empty() || (indices.back() != depth && indices.back() != -1))
    throw Error(backbone.path("out_indices"), str("the last block, ", depth), join(indices));
}

// The padding must not add patches.
void check_patches(const VisionTransformerConfig& vit, const JsonFields& backbone) {
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t patch = vit.patch_size[axis], pixels = vit.img_size[axis];
    if (patch <= 2 * kPatchPadding || pixels % patch != 0)
      throw Error(backbone.path("patch_size"), str("above ", 2 * kPatchPadding, ", a divisor of image_size ", pixels),
                  str(patch));
  }
}

void read_vitpose_backbone(const JsonFields& backbone, VitPoseConfig& config) {
  const std::string type = backbone.text("model_type").value_or("");
  if (type != "vitpose_backbone")
    throw Error(backbone.path("model_type"), "vitpose_backbone", "\"" + type.substr(0, 80) + "\"");
  Json vit = backbone.object();
  vit["model_type"] = "vit";
  if (!backbone.has("image_size")) vit["image_size"] = {256, 192};
  const int64_t dim = positive_dim(backbone, "hidden_size", 768), ratio = positive_dim(backbone, "mlp_ratio", 4);
  vit["intermediate_size"] = dim * ratio;
  DenseConfig dense;
  read_dense_blocks(vit, backbone.where(), dense);
  config.backbone = dense.backbone;
  config.num_experts = positive_dim(backbone, "num_experts", 1);
  if (config.num_experts > kMaxExperts)
    throw Error(backbone.path("num_experts"), str("1 to ", kMaxExperts), str(config.num_experts));
  if (config.num_experts > 1) {
    config.expert_features = positive_dim(backbone, "part_features", 256);
    if (config.expert_features >= dim)
      throw Error(backbone.path("part_features"), str("below hidden_size ", dim), str(config.expert_features));
  }
  check_patches(config.backbone, backbone);
  require_last_feature_map(backbone, config.backbone.depth);
}

// "edges": pairs of key points, in published files.
void read_limbs(const JsonFields& file, VitPoseConfig& config) {
  if (!file.has("edges") || !file.at("edges").is_array() || file.at("edges").empty()) {
    if (config.num_keypoints() == kCocoKeypoints) config.limbs = coco_limbs();
    return;
  }
  for (const Json& edge : file.at("edges")) {
    const auto is_keypoint = [&](const Json& end) {
      return end.is_number_integer() && end >= 0 && end < config.num_keypoints();
    };
    if (!edge.is_array() || edge.size() != 2 || !std::ranges::all_of(edge, is_keypoint))
      throw Error(file.path("edges"), str("pairs of key points from 0 to ", config.num_keypoints() - 1),
                  edge.dump().substr(0, 80));
    config.limbs.push_back({edge[0], edge[1]});
  }
}

// VitPoseImageProcessor's class attributes, where the file has no value.
void read_vitpose_processor(const std::string& text, const std::string& where, VitPoseConfig& config) {
  Json json = text.empty() ? Json::object() : parse_json(text, where);
  const JsonFields file(json, where);
  for (const char* key : {"image_processor_type", "feature_extractor_type"}) {
    const auto type = file.text(key);
    if (type && !type->starts_with("VitPose"))
      throw Error(file.path(key), "VitPoseImageProcessor", "\"" + type->substr(0, 80) + "\"");
  }
  require_defaults(file, {{"do_affine_transform", true}, {"normalize_factor", 200.0}});
  const auto& size = config.backbone.img_size;
  std::array<int64_t, 2> given{256, 192};
  if (file.has("size"))
    given = {file.nested("size").integer("height").value_or(0), file.nested("size").integer("width").value_or(0)};
  if (given != size)
    throw Error(file.path("size"), str("image_size of the model, ", size[0], "×", size[1]),
                str(given[0], "×", given[1]));
  for (const char* key : {"image_processor_type", "feature_extractor_type", "size"}) json.erase(key);
  json["do_resize"] = false;
  const Json defaults{{"image_mean", {0.485, 0.456, 0.406}}, {"image_std", {0.229, 0.224, 0.225}}};
  for (const auto& [key, value] : defaults.items()) {
    if (!file.has(key.c_str())) json[key] = value;
  }
  const Json nothing = Json::object();
  config.preprocessing = read_preprocessor(json, JsonFields(nothing, where), config.backbone, where);
}

}  // namespace

VitPoseConfig read_vitpose_config(const std::string& text, const std::string& path, const std::string& preprocessor,
                                  const std::string& preprocessor_path) {
  const Json json = parse_json(text, path);
  const JsonFields file(json, path);
  const std::string type = file.text("model_type").value_or("");
  if (type != "vitpose") throw Error(file.path("model_type"), "vitpose", "\"" + type.substr(0, 80) + "\"");
  VitPoseConfig config;
  if (!file.has("backbone_config"))
    throw Error(file.path("backbone_config"), "the configuration of a vitpose_backbone", "none");
  read_vitpose_backbone(file.nested("backbone_config"), config);
  config.simple_decoder = file.boolean("use_simple_decoder").value_or(true);
  config.scale_factor = positive_dim(file, "scale_factor", 4);
  constexpr int64_t kMaxScale = 16;
  if (config.scale_factor > kMaxScale)
    throw Error(file.path("scale_factor"), str("1 to ", kMaxScale), str(config.scale_factor));
  config.keypoints = class_names_of(file);
  read_limbs(file, config);
  read_vitpose_processor(preprocessor, preprocessor_path, config);
  return config;
}

BodySide side_of(const std::string& keypoint) { return sided(keypoint).side; }

std::vector<int64_t> mirrored_keypoints(const std::vector<std::string>& names) {
  std::vector<int64_t> mirrored;
  for (const std::string& name : names) {
    const auto [side, counterpart] = sided(name);
    const auto other = std::ranges::find(names, counterpart);
    const bool has_other = side != BodySide::none && other != names.end();
    mirrored.push_back(has_other ? other - names.begin() : std::ssize(mirrored));
  }
  return mirrored;
}

}  // namespace vitrail::models
