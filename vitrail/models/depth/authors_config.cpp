// SPDX-License-Identifier: Apache-2.0
// The authors' checkpoints of Depth Anything, which have no configuration.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/models/depth/config.h"
#include "vitrail/models/tensor_extents_internal.h"

namespace vitrail::models {
namespace {

// The blocks whose outputs the head reads, in versions 1 and 2.
struct PublishedLayers {
  int64_t depth;
  std::vector<int64_t> first, second;
};
const std::vector<PublishedLayers>& published_layers() {
  static const std::vector<PublishedLayers> rows{{12, {8, 9, 10, 11}, {2, 5, 8, 11}},
                                                 {24, {20, 21, 22, 23}, {4, 11, 17, 23}},
                                                 {40, {36, 37, 38, 39}, {9, 19, 29, 39}}};
  return rows;
}

struct Release {
  bool second = false;   // version 2
  double max_depth = 0;  // 0: relative depth
};

Release release_of(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  const auto has = [&](const char* part) { return name.find(part) != name.npos; };
  const bool metric = has("metric"), known = has("depth_anything_v2_") || (has("depth_anything_vit") && !metric);
  if (!known || (metric && !has("hypersim") && !has("vkitti"))) {
    throw Error(path,
                "a name of the authors, which tells what the tensors do not: depth_anything_vitl14.pth (version 1), "
                "depth_anything_v2_vitl.pth, depth_anything_v2_metric_hypersim_vitl.pth (20 m) or "
                "depth_anything_v2_metric_vkitti_vitl.pth (80 m); or a config.json of transformers beside the file",
                name);
  }
  return {has("depth_anything_v2_"), !metric ? 0.0 : has("hypersim") ? 20.0 : 80.0};
}

// Positions have the offset 0, as in transformers; the authors' code has 0.1.
VisionTransformerConfig backbone_of(const weights::Checkpoint& checkpoint) {
  const auto of = [&](const std::string& name, int axis) { return extent_of(checkpoint, "pretrained." + name, axis); };
  constexpr int64_t kHeadDim = 64;
  VisionTransformerConfig vit;
  vit.patch_size = {14, 14};
  const auto side = static_cast<int64_t>(std::sqrt(static_cast<double>(std::max<int64_t>(of("pos_embed", 1) - 1, 1))));
  vit.img_size = {14 * side, 14 * side};
  vit.embed_dim = of("cls_token", 2);
  vit.num_heads = vit.embed_dim / kHeadDim;
  vit.depth = 0;
  while (of(str("blocks.", vit.depth, ".norm1.weight"), 0) > 0) ++vit.depth;
  if (of("blocks.0.mlp.w12.weight", 0) > 0) vit.mlp_layer = MlpLayer::swiglu;
  vit.init_values = 1.0;
  vit.num_classes = 0;
  vit.dynamic_img_size = vit.allow_remainder = true;
  vit.pos_interp = {.antialias = false};
  return vit;
}

}  // namespace

DepthConfig depth_config_of_file(const weights::Checkpoint& checkpoint, const std::string& path) {
  const Release release = release_of(path);
  DepthConfig config;
  config.backbone = backbone_of(checkpoint);
  for (const PublishedLayers& row : published_layers()) {
    if (row.depth == config.backbone.depth) config.layers = release.second ? row.second : row.first;
  }
  if (config.layers.empty() || config.backbone.num_heads < 1) {
    throw Error(path, "12, 24 or 40 blocks of a multiple of 64 features",
                str(config.backbone.depth, " of ", config.backbone.embed_dim));
  }
  config.architecture = "depth_anything";
  DptNeckConfig& neck = config.neck;
  neck.dim = config.backbone.embed_dim;
  for (size_t i = 0; i < neck.hidden_dims.size(); ++i)
    neck.hidden_dims[i] = extent_of(checkpoint, str("depth_head.scratch.layer", i + 1, "_rn.weight"), 1);
  neck.fusion_dim = extent_of(checkpoint, "depth_head.scratch.layer1_rn.weight", 0);
  config.head_dim = extent_of(checkpoint, "depth_head.scratch.output_conv2.0.weight", 0);
  config.metric = release.max_depth > 0;
  if (config.metric) config.max_depth = release.max_depth;
  config.resize = {.size = {518, 518}, .keep_aspect_ratio = true, .multiple = 14};
  Preprocessing& pixels = config.preprocessing;
  pixels.rule = ResizeRule::huggingface;
  pixels.input_size = pixels.resize_to = config.resize.size;
  pixels.interpolation = "bicubic";
  pixels.mean = {0.485, 0.456, 0.406};
  pixels.std = {0.229, 0.224, 0.225};
  return config;
}

std::string write_depth_anything_config(const DepthConfig& config) {
  const VisionTransformerConfig& vit = config.backbone;
  const DptNeckConfig& neck = config.neck;
  std::vector<int64_t> depths;
  for (const int64_t layer : config.layers) depths.push_back(layer + 1);
  const nlohmann::ordered_json backbone{{"model_type", "dinov2"},
                                        {"hidden_size", vit.embed_dim},
                                        {"num_hidden_layers", vit.depth},
                                        {"num_attention_heads", vit.num_heads},
                                        {"image_size", vit.img_size[0]},
                                        {"patch_size", vit.patch_size[0]},
                                        {"use_swiglu_ffn", vit.mlp_layer == MlpLayer::swiglu},
                                        {"out_indices", depths},
                                        {"reshape_hidden_states", false}};
  nlohmann::ordered_json json{{"architectures", {"DepthAnythingForDepthEstimation"}},
                              {"model_type", config.architecture},
                              {"backbone_config", backbone},
                              {"patch_size", vit.patch_size[0]},
                              {"reassemble_hidden_size", neck.dim},
                              {"reassemble_factors", neck.factors},
                              {"neck_hidden_sizes", neck.hidden_dims},
                              {"fusion_hidden_size", neck.fusion_dim},
                              {"head_hidden_size", config.head_dim},
                              {"depth_estimation_type", config.metric ? "metric" : "relative"}};
  if (config.metric) json["max_depth"] = config.max_depth;
  return json.dump(2) + "\n";
}

std::string write_depth_processor(const DepthConfig& config) {
  constexpr int kBicubic = 3;  // Pillow's number
  const nlohmann::ordered_json json{{"image_processor_type", "DPTImageProcessor"},
                                    {"do_resize", true},
                                    {"size", {{"height", config.resize.size[0]}, {"width", config.resize.size[1]}}},
                                    {"keep_aspect_ratio", config.resize.keep_aspect_ratio},
                                    {"ensure_multiple_of", config.resize.multiple},
                                    {"resample", kBicubic},
                                    {"do_rescale", true},
                                    {"do_normalize", true},
                                    {"image_mean", *config.preprocessing.mean},
                                    {"image_std", *config.preprocessing.std}};
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
