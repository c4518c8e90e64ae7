// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/module.h"

namespace vitrail::nn {

enum class NormLayer : uint8_t { layer_norm, rms_norm };

// γ · (x − mean) / √(variance + ε) + β over the last axis, biased variance (Ba, Kiros & Hinton 2016).
// x [..., features].  Parameters: weight (γ, ones) and bias (β, zeros), [features].
// ε has no default, because model families differ: 1e-6 in timm, SAM and Google's ViT; 1e-5 in torch.nn.LayerNorm;
// 1e-12 in Hugging Face's ViT and DeiT.
// rms_norm: γ · x / √(mean(x²) + ε) without β (Zhang & Sennrich 2019), as timm's RmsNorm.
class LayerNorm : public Module {
 public:
  LayerNorm(int64_t features, double eps, const ParamSource& params, NormLayer kind = NormLayer::layer_norm);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return kind_ == NormLayer::rms_norm ? "RmsNorm" : "LayerNorm"; }
  std::string extra() const override;
  void visit(Visitor& visitor) override;

 private:
  NormLayer kind_;
  Tensor weight_, bias_;
  double eps_;
};

// LayerNorm over the channels of a feature map [B, C, H, W].  Parameters: weight (ones) and bias (zeros), [C].  Source:
// Segment Anything's LayerNorm2d.
class LayerNorm2d : public Module {
 public:
  LayerNorm2d(int64_t channels, const ParamSource& params, double eps = 1e-6);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "LayerNorm2d"; }
  void visit(Visitor& visitor) override;

 private:
  Tensor weight_, bias_;
  double eps_;
};

}  // namespace vitrail::nn
