// SPDX-License-Identifier: Apache-2.0
#pragma once
// Depth estimators with the head of DPT: Depth Anything (Yang et al. 2024, versions 1 and 2) on DINOv2, and DPT (Ranftl
// et al. 2021) on ViT, DINOv2 and BEiT.
#include "vitrail/models/configured_files.h"
#include "vitrail/models/dense/dpt_neck.h"
#include "vitrail/models/depth/config.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// [projection, relu], conv1, enlarged, conv2, relu, conv3: [B, h, w, C] → [B, height, width].
class DepthHead : public nn::Module {
 public:
  DepthHead(const DepthConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x, std::array<int64_t, 2> size) const;
  std::string type() const override { return "DepthEstimationHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  std::optional<nn::Conv2d> projection_;
  nn::Conv2d conv1_, conv2_, conv3_;
};

// Parameters: backbone.* with timm's names, neck.* and head.* with those of transformers.
class DepthEstimator : public nn::Module {
 public:
  DepthEstimator(const DepthConfig& config, const ParamSource& params);
  // Images [B, C, H, W] → the prediction [B, height, width]: max_depth · relu (relative depth) or max_depth · sigmoid
  // (metric depth) of the head's last layer.
  Tensor forward(const Tensor& images) const;
  const DepthConfig& config() const { return config_; }
  std::string type() const override { return "DepthEstimator"; }
  void visit(nn::Visitor& visitor) override;

 private:
  DepthConfig config_;
  VisionTransformer backbone_;
  DptNeck neck_;
  DepthHead head_;
};

// Whether weights have the tensors of Depth Anything or DPT.
bool is_depth_estimator(const ModelFiles& files);

using DepthFiles = ConfiguredFiles<DepthConfig>;

// Reads a folder of transformers' DepthAnythingForDepthEstimation or DPTForDepthEstimation, or a file of Depth
// Anything's authors with or without a config.json of transformers beside it.
DepthFiles open_depth_estimator(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
DepthEstimator load_depth_estimator(const DepthFiles& files);

}  // namespace vitrail::models
