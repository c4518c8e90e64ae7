// SPDX-License-Identifier: Apache-2.0
#pragma once
// ViTMatte (Yao et al. 2024, "Boosting Image Matting with Pretrained Plain Vision Transformers"): the alpha of each
// pixel of an image with a trimap.  Maps are [B, h, w, C].
#include <optional>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/sam/image_encoder.h"
#include "vitrail/models/vitmatte/config.h"

namespace vitrail::models {

// x + norm3(conv3(gelu(norm2(conv2(gelu(norm1(conv1(x))))))))), convolutions of 1×1, 3×3 and 1×1 without bias.
class VitDetResidual : public nn::Module {
 public:
  VitDetResidual(int64_t dim, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "ResBottleneckBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d conv1_;
  nn::LayerNorm norm1_;
  nn::Conv2d conv2_;
  nn::LayerNorm norm2_;
  nn::Conv2d conv3_;
  nn::LayerNorm norm3_;
};

// Patches with resampled positions, then blocks of Segment Anything, some with a residual behind them (Li et al. 2022).
// Parameters: patch_embed.proj, pos_embed [1, 1 + N, D], whose first position is that of a class token that the model
// does not have, blocks.*, residuals.*.
class VitDetBackbone : public nn::Module {
 public:
  VitDetBackbone(const VitMatteConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& images) const;  // [B, C, H, W] → [B, h, w, D]
  std::string type() const override { return "ViTDet"; }
  void visit(nn::Visitor& visitor) override;

 private:
  VitMatteConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor pos_embed_;
  nn::ModuleList<SamBlock> blocks_;
  nn::ModuleList<VitDetResidual> residuals_;  // in the order of config.residual_blocks
};

// A 3×3 convolution, whose weights contain a batch normalisation, and relu.
class VitMatteConvolution : public nn::Module {
 public:
  VitMatteConvolution(int64_t in, int64_t out, int64_t stride, double eps, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "BasicConv3x3"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d conv_;
};

// Doubles the backbone's map until it has the input's size, each time fused with a map of the convolution stream, the
// last time with the input.
class VitMatteDecoder : public nn::Module {
 public:
  VitMatteDecoder(const VitMatteConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& features, const Tensor& input) const;  // → logits of alpha [B, H, W]
  std::string type() const override { return "DetailCaptureModule"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<VitMatteConvolution> stream_, fusion_;
  nn::Conv2d conv1_, conv2_;  // the matting head
};

class VitMatte : public nn::Module {
 public:
  VitMatte(const VitMatteConfig& config, const ParamSource& params);
  // Red, green, blue and trimap [B, 4, H, W], of a padded size → alpha [B, H, W].
  Tensor forward(const Tensor& images) const;
  const VitMatteConfig& config() const { return config_; }
  std::string type() const override { return "ViTMatte"; }
  void visit(nn::Visitor& visitor) override;

 private:
  VitMatteConfig config_;
  VitDetBackbone backbone_;
  VitMatteDecoder decoder_;
};

// Whether weights have the tensors of ViTMatte.
bool is_vitmatte(const ModelFiles& files);

using VitMatteFiles = ConfiguredFiles<VitMatteConfig>;

// Reads a folder of transformers' VitMatteForImageMatting.
VitMatteFiles open_vitmatte(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
VitMatte load_vitmatte(const VitMatteFiles& files);

}  // namespace vitrail::models
