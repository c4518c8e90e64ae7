// SPDX-License-Identifier: Apache-2.0
// The authors' checkpoints of ViTPose and ViTPose+, which have no configuration.
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/models/tensor_extents_internal.h"
#include "vitrail/models/vitpose/coco_person_internal.h"
#include "vitrail/models/vitpose/config.h"

namespace vitrail::models {
namespace {

constexpr std::array<int64_t, 2> kCrop{256, 192};
constexpr int64_t kPatch = 16;

// The heads of ViTPose-S, B, L and H; 0: another width.
int64_t heads_of(int64_t dim) { return dim == 384 || dim == 768 ? 12 : dim == 1024 || dim == 1280 ? 16 : 0; }

VisionTransformerConfig vitpose_backbone_of(const weights::Checkpoint& checkpoint) {
  const auto of = [&](const std::string& name, int axis) { return extent_of(checkpoint, "backbone." + name, axis); };
  VisionTransformerConfig vit;
  vit.img_size = kCrop;
  vit.patch_size = {kPatch, kPatch};
  vit.embed_dim = of("pos_embed", 2);
  vit.num_heads = heads_of(vit.embed_dim);
  vit.depth = 0;
  while (of(str("blocks.", vit.depth, ".norm1.weight"), 0) > 0) ++vit.depth;
  vit.num_classes = 0;
  vit.dynamic_img_size = vit.allow_remainder = true;
  const int64_t positions = 1 + kCrop[0] / kPatch * (kCrop[1] / kPatch);
  if (vit.num_heads == 0 || vit.depth == 0 || of("pos_embed", 1) != positions) {
    throw Error(checkpoint.path(),
                str("ViTPose of 384, 768, 1024 or 1280 features for crops of ", kCrop[1], "×", kCrop[0],
                    " pixels; or a config.json of transformers beside the file"),
                str(vit.embed_dim, " features, ", of("pos_embed", 1), " positions"));
  }
  return vit;
}

}  // namespace

std::string authors_head(int64_t dataset) {
  return dataset == 0 ? "keypoint_head" : str("associate_keypoint_heads.", dataset - 1);
}

VitPoseConfig vitpose_config_of_file(const weights::Checkpoint& checkpoint, int64_t dataset) {
  VitPoseConfig config;
  config.backbone = vitpose_backbone_of(checkpoint);
  const std::string experts = "backbone.blocks.0.mlp.experts.";
  while (checkpoint.has(str(experts, config.num_experts, ".weight"))) ++config.num_experts;
  if (config.num_experts > 1) config.expert_features = extent_of(checkpoint, experts + "0.weight", 0);
  const std::string head = authors_head(dataset);
  config.simple_decoder = !checkpoint.has(head + ".deconv_layers.0.weight");
  const int64_t keypoints = extent_of(checkpoint, head + ".final_layer.weight", 0);
  if (keypoints == kCocoKeypoints && dataset == 0) {
    config.keypoints = coco_keypoints();
    config.limbs = coco_limbs();
  }
  for (int64_t i = std::ssize(config.keypoints); i < keypoints; ++i) config.keypoints.push_back(str("LABEL_", i));
  Preprocessing& pixels = config.preprocessing;
  pixels.rule = ResizeRule::huggingface;
  pixels.input_size = kCrop;
  pixels.interpolation = "bilinear";
  pixels.mean = {0.485, 0.456, 0.406};
  pixels.std = {0.229, 0.224, 0.225};
  return config;
}

std::string write_vitpose_config(const VitPoseConfig& config) {
  const VisionTransformerConfig& vit = config.backbone;
  nlohmann::ordered_json backbone{
      {"model_type", "vitpose_backbone"}, {"image_size", vit.img_size},        {"patch_size", vit.patch_size},
      {"hidden_size", vit.embed_dim},     {"num_hidden_layers", vit.depth},    {"num_attention_heads", vit.num_heads},
      {"layer_norm_eps", vit.norm_eps},   {"num_experts", config.num_experts}, {"out_indices", {vit.depth}}};
  if (config.num_experts > 1) backbone["part_features"] = config.expert_features;
  nlohmann::ordered_json labels;
  for (const std::string& name : config.keypoints) labels[std::to_string(labels.size())] = name;
  const nlohmann::ordered_json json{{"architectures", {"VitPoseForPoseEstimation"}},
                                    {"model_type", config.architecture},
                                    {"backbone_config", backbone},
                                    {"scale_factor", config.scale_factor},
                                    {"use_simple_decoder", config.simple_decoder},
                                    {"id2label", labels},
                                    {"edges", config.limbs}};
  return json.dump(2) + "\n";
}

std::string write_vitpose_processor(const VitPoseConfig& config) {
  const nlohmann::ordered_json json{
      {"image_processor_type", "VitPoseImageProcessor"},
      {"do_affine_transform", true},
      {"size", {{"height", config.backbone.img_size[0]}, {"width", config.backbone.img_size[1]}}},
      {"do_rescale", true},
      {"do_normalize", true},
      {"image_mean", *config.preprocessing.mean},
      {"image_std", *config.preprocessing.std}};
  return json.dump(2) + "\n";
}

}  // namespace vitrail::models
