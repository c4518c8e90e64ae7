// SPDX-License-Identifier: Apache-2.0
#pragma once
// YOLOS (Fang et al. 2021, "You Only Look at One Sequence"): objects found by tokens that a Vision Transformer has
// beside the patches.
#include "vitrail/models/configured_files.h"
#include "vitrail/models/dense/vit_backbone.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/yolos/config.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/detr_mlp.h"
#include "vitrail/nn/patch_embed.h"

namespace vitrail::models {

// The order of tokens is CLS, patches, detection.  Parameters have timm's names, and det_token, mid_pos_embed.
class YolosBackbone : public VitBackbone {
 public:
  YolosBackbone(const YolosConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& images) const;  // [B, C, H, W] → the normalised detection tokens [B, T, D]
  const VisionTransformerConfig& config() const override { return config_; }
  void visit(nn::Visitor& visitor) override;

 private:
  using Grid = std::array<int64_t, 2>;
  Tensor embed(const Tensor& images, Grid grid) const;
  // positions [1, 1 + own grid + T, D] with those of the patches resampled to a grid
  Tensor resampled(const Tensor& positions, Grid grid) const;

  VisionTransformerConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor cls_token_, det_token_, pos_embed_;
  Tensor mid_pos_embed_;  // [depth − 1, 1, 1 + own grid + T, D], or undefined
  nn::ModuleList<nn::Block> blocks_;
  nn::LayerNorm norm_;
};

struct YolosOutput {
  Tensor logits;  // [B, T, classes + 1], the last one of "no object"
  Tensor boxes;   // [B, T, 4]: centre x, centre y, width and height as shares of the image's size
};

// Parameters: backbone.*, the others with the names of transformers.
class Yolos : public nn::Module {
 public:
  Yolos(const YolosConfig& config, const ParamSource& params);
  YolosOutput forward(const Tensor& images) const;
  const YolosConfig& config() const { return config_; }
  std::string type() const override { return "YOLOS"; }
  void visit(nn::Visitor& visitor) override;

 private:
  YolosConfig config_;
  YolosBackbone backbone_;
  nn::DetrMlp class_labels_classifier_, bbox_predictor_;
};

// Whether weights have the tensors of YOLOS.
bool is_yolos(const ModelFiles& files);

using YolosFiles = ConfiguredFiles<YolosConfig>;

// Reads a folder of transformers' YolosForObjectDetection.
YolosFiles open_yolos(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
Yolos load_yolos(const YolosFiles& files);

}  // namespace vitrail::models
