// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's image encoder: a plain ViT with attention in windows and a few global blocks (Li et al. 2022,
// "Exploring Plain Vision Transformer Backbones for Object Detection"; segment_anything/modeling/image_encoder.py).
#include "vitrail/models/sam/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/layer_norm.h"
#include "vitrail/nn/linear.h"
#include "vitrail/nn/mlp.h"
#include "vitrail/nn/patch_embed.h"

namespace vitrail::models {

// A table of relative positions [L, d] for `positions` cells, [2·positions − 1, d]: linear interpolation between its
// rows, as get_rel_pos() of the reference.
Tensor relative_position_table(const Tensor& table, int64_t positions);

// Self-attention with decomposed relative positions, of a map [B, h, w, C] or of its windows.  Cells that pad the map
// to complete windows take part as keys: a zero there becomes the bias of qkv, so they are filled in after the
// projection. Parameters: qkv, proj, rel_pos_h and rel_pos_w [2·n − 1, d], which are interpolated if their length
// differs.
class SamAttention : public nn::Module {
 public:
  SamAttention(const SamEncoderConfig& config, const SamBlockConfig& block, const ParamSource& params);
  Tensor forward(const Tensor& x) const;  // [B, h, w, C] → [B, h, w, C]
  std::string type() const override { return "Attention"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t num_heads_, head_dim_, window_;
  bool qkv_bias_;
  nn::Linear qkv_, proj_;
  Tensor rel_pos_h_, rel_pos_w_;
};

// x + attn(norm1(x)), then x + mlp(norm2(x)).
class SamBlock : public nn::Module {
 public:
  SamBlock(const SamEncoderConfig& config, const SamBlockConfig& block, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "Block"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::LayerNorm norm1_;
  SamAttention attn_;
  nn::LayerNorm norm2_;
  nn::Mlp mlp_;
};

// Reduces the width to the mask decoder's: 1×1 convolution, norm, 3×3 convolution, norm.
class SamNeck : public nn::Module {
 public:
  SamNeck(int64_t dim, int64_t out_chans, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "Sequential"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::Conv2d conv1_;
  nn::LayerNorm norm1_;
  nn::Conv2d conv2_;
  nn::LayerNorm norm2_;
};

struct SamTrunk {
  Tensor output;        // [B, h, w, dim], of the last block
  Tensor intermediate;  // [B, h, w, D], what HQ-SAM reads; undefined if there is no such block
};

// What an image encoder gives, channels last.
struct SamMaps {
  Tensor embedding;             // [B, h, w, out_chans]
  std::vector<Tensor> further;  // what SamMaskDecoder::image_features() reads
};

// Normalised images [B, 3, S, S] → embeddings [B, h, w, out_chans], channels last.
class SamEncoder : public nn::Module {
 public:
  Tensor forward(const Tensor& images) const { return maps(images).embedding; }
  virtual SamMaps maps(const Tensor& images) const = 0;
  // The two parts of forward(), for an encoder whose neck reads one map.  Throw Error for another.
  Tensor trunk(const Tensor& images) const { return trunk_outputs(images).output; }
  virtual SamTrunk trunk_outputs(const Tensor& images) const;
  virtual Tensor neck(const Tensor& output) const;
  // The linear layers and convolutions before and behind the blocks, as paths in this module.
  virtual std::vector<std::string> outer_layers() const = 0;

 protected:
  using Module::Module;
};

// An encoder whose neck reads the output of its last block.
class SamSingleScaleEncoder : public SamEncoder {
 public:
  SamMaps maps(const Tensor& images) const override;
  SamTrunk trunk_outputs(const Tensor& images) const override = 0;
  Tensor neck(const Tensor& output) const override { return neck_.forward(output); }
  void visit(nn::Visitor& visitor) override;

 protected:
  SamSingleScaleEncoder(int64_t dim, int64_t out_chans, const ParamSource& params);

 private:
  SamNeck neck_;
};

// HQ-SAM reads the output of the first block without windows.
class SamImageEncoder : public SamSingleScaleEncoder {
 public:
  SamImageEncoder(const SamEncoderConfig& config, const ParamSource& params);
  SamTrunk trunk_outputs(const Tensor& images) const override;
  std::vector<std::string> outer_layers() const override;
  std::string type() const override { return "ImageEncoderViT"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamEncoderConfig config_;
  nn::PatchEmbed patch_embed_;
  Tensor pos_embed_;  // [1, h, w, C]
  nn::ModuleList<SamBlock> blocks_;
};

}  // namespace vitrail::models
