// SPDX-License-Identifier: Apache-2.0
#pragma once
// SAM 2's image encoder (Ravi et al. 2024; sam2/modeling/backbones/image_encoder.py): Hiera, and a neck that reads the
// maps of all its stages.
#include "vitrail/models/hiera/hiera.h"
#include "vitrail/models/sam/image_encoder.h"

namespace vitrail::models {

// A 1×1 convolution to the width of the embedding.
class SamLateral : public nn::Module {
 public:
  SamLateral(int64_t dim, int64_t out_chans, const ParamSource& params)
      : Module(params.path()), conv_({.in_chans = dim, .out_chans = out_chans}, params.child("conv")) {}
  Tensor forward(const Tensor& x) const { return conv_.forward(x); }
  std::string type() const override { return "Sequential"; }
  void visit(nn::Visitor& visitor) override { visitor.child("conv", static_cast<nn::Module&>(conv_)); }

 private:
  nn::Conv2d conv_;
};

// A feature pyramid (Lin et al. 2017) without 3×3 convolutions.  Of maps of strides 4, 8, 16 and 32, that of stride 16
// is the embedding, to which alone the coarser one is added.  Parameters: convs.N.conv, from the coarsest map on.
class SamFeaturePyramid : public nn::Module {
 public:
  SamFeaturePyramid(const SamEncoderConfig& config, const ParamSource& params);
  // maps of strides 4, 8, 16 and 32 → the embedding [B, h, w, C], and the maps of strides 4 and 8.
  SamMaps forward(const std::vector<Tensor>& maps) const;
  std::string type() const override { return "FpnNeck"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<SamLateral> convs_;
};

class SamHieraEncoder : public SamEncoder {
 public:
  SamHieraEncoder(const SamEncoderConfig& config, const ParamSource& params);
  SamMaps maps(const Tensor& images) const override;
  std::vector<std::string> outer_layers() const override;
  std::string type() const override { return "ImageEncoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  HieraTrunk trunk_;
  SamFeaturePyramid neck_;
};

}  // namespace vitrail::models
