// SPDX-License-Identifier: Apache-2.0
#pragma once
// TinyViT (Wu et al. 2022), the image encoder of MobileSAM (Zhang et al. 2023; tiny_vit_sam.py): stages of convolutions
// and of attention in windows.  The last stage keeps the size of the map.  Maps are [B, h, w, C].
#include "vitrail/models/sam/image_encoder.h"

namespace vitrail::models {

struct SamConvNormConfig {
  int64_t in_chans = 0, out_chans = 0;
  int64_t kernel = 1;      // 1, or 3 with padding 1
  int64_t stride = 1;      // 1 for a kernel of 1
  bool depthwise = false;  // a kernel of 3 for each channel
};

// A convolution without a bias and a batch normalisation in eval mode, which are one convolution.  Parameters: c.weight
// and bn.{weight, bias, running_mean, running_var}, or c.weight and c.bias, where that is done already.
class SamConvNorm : public nn::Module {
 public:
  SamConvNorm(const SamConvNormConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& x, kernels::Activation activation = kernels::Activation::none) const;
  std::string type() const override { return "Conv2d_BN"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamConvNormConfig config_;
  Tensor weight_, bias_;
};

// Self-attention in windows with a bias for the distances |Δy| and |Δx|.  Cells that pad the map to complete windows
// are 0 before the norm.  Parameters: norm, qkv with the rows (head, [q, k, v], d), proj, attention_biases [H,
// window²].
class SamTinyAttention : public nn::Module {
 public:
  SamTinyAttention(const SamTinyStage& stage, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "Attention"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor bias() const;  // [1, H, window², window²]

  int64_t num_heads_, head_dim_, window_;
  nn::LayerNorm norm_;
  nn::Linear qkv_, proj_;
  Tensor biases_;
};

// x + attn(x), a depthwise convolution, then x + fc2(GELU(fc1(norm(x)))).
class SamTinyBlock : public nn::Module {
 public:
  SamTinyBlock(const SamTinyStage& stage, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "TinyViTBlock"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamTinyAttention attn_;
  nn::LayerNorm norm_;
  nn::Linear fc1_, fc2_;
  SamConvNorm local_conv_;
};

// Three convolutions: of each cell, of each channel, of each cell, with GELU between them.  As an inverted bottleneck
// (Sandler et al. 2018), `hidden` wide, with a residual and GELU at the end; or to merge patches, without both.
class SamTinyConvolutions : public nn::Module {
 public:
  SamTinyConvolutions(int64_t in, int64_t hidden, int64_t out, int64_t stride, bool residual,
                      const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return residual_ ? "MBConv" : "PatchMerging"; }
  void visit(nn::Visitor& visitor) override;

 private:
  bool residual_;
  SamConvNorm conv1_, conv2_, conv3_;
};

// The first stage has convolutions as blocks, the others attention.
class SamTinyLayer : public nn::Module {
 public:
  SamTinyLayer(const SamTinyStage& stage, bool convolutions, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "BasicLayer"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<SamTinyConvolutions> convolutions_;
  nn::ModuleList<SamTinyBlock> blocks_;
  std::optional<SamTinyConvolutions> downsample_;
};

class SamTinyEncoder : public SamSingleScaleEncoder {
 public:
  SamTinyEncoder(const SamEncoderConfig& config, const ParamSource& params);
  SamTrunk trunk_outputs(const Tensor& images) const override;
  std::vector<std::string> outer_layers() const override;
  std::string type() const override { return "TinyViT"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamConvNorm stem1_, stem2_;
  nn::ModuleList<SamTinyLayer> layers_;
};

}  // namespace vitrail::models
