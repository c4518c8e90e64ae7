// SPDX-License-Identifier: Apache-2.0
#pragma once
// EoMT (Kerssies et al. 2025, "Your ViT is secretly an image segmentation model"), on DINOv2 and DINOv3: each query
// gives a class and a mask.
#include <optional>

#include "vitrail/models/configured_files.h"
#include "vitrail/models/dense/vit_backbone.h"
#include "vitrail/models/eomt/config.h"
#include "vitrail/models/model_files.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/nn/rotary_embedding.h"

namespace vitrail::models {

// A Vision Transformer whose blocks run one by one.  Parameters have timm's names.
class EomtBackbone : public VitBackbone {
 public:
  EomtBackbone(const VisionTransformerConfig& config, const ParamSource& params);
  Tensor embed(const Tensor& images) const;  // [B, C, S, S] → tokens: class token, registers, patches [B, N, D]
  // One block.  bias: added to the scores of its attention, or undefined.  Rotary positions are those of the last
  // tokens, the patches.
  Tensor run_block(int64_t index, const Tensor& x, const Tensor& bias) const;
  Tensor normalized(const Tensor& x) const { return norm_.forward(x); }
  const VisionTransformerConfig& config() const override { return config_; }
  void visit(nn::Visitor& visitor) override;

 private:
  VisionTransformerConfig config_;
  std::array<int64_t, 2> grid_;
  nn::PatchEmbed patch_embed_;
  Tensor cls_token_, reg_token_, pos_embed_;
  std::optional<nn::RotaryEmbedding> rope_;
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
};

// A map of twice the size: transposed convolution, activation, a 3×3 convolution of each channel, LayerNorm.
class EomtScaleLayer : public nn::Module {
 public:
  EomtScaleLayer(int64_t dim, kernels::Activation activation, const ParamSource& params);
  Tensor forward(const Tensor& x) const;  // [B, h, w, D] → [B, 2h, 2w, D]
  std::string type() const override { return "ScaleLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  kernels::Activation activation_;
  nn::ConvTranspose2d conv1_;
  Tensor conv2_;  // weight [D, 1, 3, 3]
  nn::LayerNorm layernorm2d_;
};

struct EomtOutput {
  Tensor classes;  // logits [B, queries, classes + 1], the last one of "no object"
  Tensor masks;    // logits [B, queries, h, w]
};

// Parameters: backbone.* with timm's names, the others with those of transformers.
class Eomt : public nn::Module {
 public:
  Eomt(const EomtConfig& config, const ParamSource& params);
  EomtOutput forward(const Tensor& images) const;
  const EomtConfig& config() const { return config_; }
  std::string type() const override { return "EoMT"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor queries_of(const Tensor& normalized) const;
  Tensor masks_of(const Tensor& normalized) const;

  EomtConfig config_;
  std::array<int64_t, 2> grid_;
  EomtBackbone backbone_;
  Tensor query_;
  nn::ModuleList<EomtScaleLayer> upscale_;
  nn::Linear fc1_, fc2_, fc3_;
  nn::Linear class_predictor_;
};

// Whether weights have the tensors of EoMT.
bool is_eomt(const ModelFiles& files);

using EomtFiles = ConfiguredFiles<EomtConfig>;

// Reads a folder of transformers' EomtForUniversalSegmentation or EomtDinov3ForUniversalSegmentation, or weights under
// the names of EoMT's authors with transformers' config.json beside them.
EomtFiles open_eomt(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
Eomt load_eomt(const EomtFiles& files);

}  // namespace vitrail::models
