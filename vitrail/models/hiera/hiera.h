// SPDX-License-Identifier: Apache-2.0
#pragma once
// Hiera (Ryali et al. 2023, "Hiera: A Hierarchical Vision Transformer without the Bells-and-Whistles"): stages of
// attention in windows and of the whole map, which pool their queries in between.  Also the image encoder of SAM 2
// (sam2/modeling/backbones/hieradet.py).  Maps are [B, h, w, C].
#include <optional>

#include "vitrail/models/hiera/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"

namespace vitrail::models {

// Self-attention of a map or of its windows.  With pooling, the queries are the largest of 2×2 cells.  Cells that pad
// the map to complete windows take part as keys: a zero there becomes the bias of qkv, so they are filled in after the
// projection.  Parameters: qkv, proj.
class HieraAttention : public nn::Module {
 public:
  HieraAttention(const HieraBlockConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x) const;  // [B, h, w, C] → [B, h, w, C'], or half the sides
  std::string type() const override { return "MultiScaleAttention"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor pooled(const Tensor& windows) const;

  HieraBlockConfig config_;
  nn::Linear qkv_, proj_;
};

// y = shortcut(norm1(x)) + attn(norm1(x)), then y + mlp(norm2(y)).  The shortcut is x itself, or where the width
// changes a projection of its norm, pooled as the queries are.  Parameters: norm1, attn, norm2, mlp, proj.
class HieraBlock : public nn::Module {
 public:
  HieraBlock(const HieraBlockConfig& config, double norm_eps, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MultiScaleBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor shortcut(const Tensor& x, const Tensor& normed) const;

  bool pools_;
  nn::LayerNorm norm1_;
  HieraAttention attn_;
  nn::LayerNorm norm2_;
  nn::Mlp mlp_;
  std::optional<nn::Linear> proj_;
};

// Parameters: patch_embed.proj; pos_embed [1, h·w, C], or with window positions [1, C, h, w] and pos_embed_window
// [1, C, n, n]; blocks.
class HieraTrunk : public nn::Module {
 public:
  // Throws Error as hiera_blocks(), naming `where`.
  HieraTrunk(const HieraConfig& config, const ParamSource& params, const std::string& where = "Hiera");
  // Images [B, in_chans, H, W] → the map of each stage, the first one [B, H/4, W/4, C].  Throws Error for sides that
  // are no multiples of HieraConfig::image_multiple().
  std::vector<Tensor> forward(const Tensor& images) const;
  // The positions of a map, [1, height, width, C]: the learned ones resized (bicubic, without antialiasing), and the
  // window positions repeated.
  Tensor positions(int64_t height, int64_t width) const;
  const HieraConfig& config() const { return config_; }
  std::string type() const override { return "Hiera"; }
  void visit(nn::Visitor& visitor) override;

 private:
  HieraConfig config_;
  nn::Conv2d patch_embed_;
  Tensor pos_embed_, pos_embed_window_;
  nn::ModuleList<HieraBlock> blocks_;
};

}  // namespace vitrail::models
