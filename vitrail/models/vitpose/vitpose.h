// SPDX-License-Identifier: Apache-2.0
#pragma once
// ViTPose (Xu et al. 2022, "Simple Vision Transformer Baselines for Human Pose Estimation") and ViTPose++ (Xu et al.
// 2023), whose MLPs have an expert for each data set of the training.
#include "vitrail/models/configured_files.h"
#include "vitrail/models/dense/vit_backbone.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/vitpose/config.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/patch_embed.h"

namespace vitrail::models {

// The patches' convolution has padding 2; there is no class token, whose position each patch has beside its own.
// Parameters have timm's names.
class VitPoseBackbone : public VitBackbone {
 public:
  VitPoseBackbone(const VitPoseConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& images) const;  // [B, C, H, W] → the normalised map [B, h, w, D]
  const VisionTransformerConfig& config() const override { return config_; }
  void visit(nn::Visitor& visitor) override;

 private:
  VisionTransformerConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor pos_embed_;  // [1, 1 + h·w, D]
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
};

// A transposed convolution with kernel 4, stride 2 and padding 1, batch normalisation and relu: [B, h, w, in] →
// [B, 2·h, 2·w, out].  The weight is that of a linear layer of the four cells around each corner of cells, which gives
// the four cells of the result there.
class VitPoseDeconvolution : public nn::Module {
 public:
  VitPoseDeconvolution(int64_t in, int64_t out, const ParamSource& deconvolution, const ParamSource& norm);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "ConvTranspose2d"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor weight_, bias_;  // [out · 4, 4 · in], [out]
};

// [relu, bilinear interpolation, a 3×3 convolution] or [two transposed convolutions, a 1×1 convolution].
class VitPoseDecoder : public nn::Module {
 public:
  VitPoseDecoder(const VitPoseConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& map) const;  // [B, h, w, D] → heat maps [B, K, 4·h, 4·w]
  std::string type() const override { return config_.simple_decoder ? "SimpleDecoder" : "ClassicDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  VitPoseConfig config_;
  std::optional<VitPoseDeconvolution> deconv1_, deconv2_;
  nn::Conv2d conv_;
};

// Parameters: backbone.*, and head.* with the names of transformers.
class VitPose : public nn::Module {
 public:
  VitPose(const VitPoseConfig& config, const ParamSource& params);
  // Crops of persons [B, C, H, W] → a heat map for each key point, [B, K, h, w].
  Tensor forward(const Tensor& images) const { return head_.forward(backbone_.forward(images)); }
  const VitPoseConfig& config() const { return config_; }
  std::string type() const override { return "VitPose"; }
  void visit(nn::Visitor& visitor) override;

 private:
  VitPoseConfig config_;
  VitPoseBackbone backbone_;
  VitPoseDecoder head_;
};

// Whether weights have the tensors of ViTPose.
bool is_vitpose(const ModelFiles& files);

using VitPoseFiles = ConfiguredFiles<VitPoseConfig>;

// Reads a folder of transformers' VitPoseForPoseEstimation, or a file of the authors with or without a config.json of
// transformers beside it.  dataset: whose expert is used, and in an authors' file whose head.  Throws Error for one
// that the model does not have.
VitPoseFiles open_vitpose(const ModelFiles& files, int64_t dataset = 0);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
VitPose load_vitpose(const VitPoseFiles& files);

}  // namespace vitrail::models
