// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include "vitrail/nn/init.h"
#include "vitrail/nn/layer_norm.h"

namespace vitrail::nn {

struct PatchEmbedConfig {
  std::array<int64_t, 2> img_size{224, 224};  // height, width
  std::array<int64_t, 2> patch_size{16, 16};
  int64_t in_chans = 3;
  int64_t embed_dim = 768;
  bool bias = true;
  std::optional<double> norm_eps = {};        // if set: LayerNorm over embed_dim after the projection ("norm")
  std::optional<double> input_norm_eps = {};  // if set: LayerNorm over a patch's C·P·P pixels before it ("input_norm")
  NormLayer norm_layer = NormLayer::layer_norm;
  bool flatten = true;
  bool dynamic_img_size = false;  // accept any multiple of the patch size instead of img_size only
  bool allow_remainder = false;   // ignore pixels beyond a multiple of the patch size instead of throwing Error
  init::Scheme init = init::Scheme::torch;
};

// A convolution with kernel = stride = patch, on patches that patchify() has cut.  Parameters: weight [D, C, P_h, P_w],
// bias [D].
class PatchProjection : public Module {
 public:
  PatchProjection(const PatchEmbedConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& patches) const;  // [B, N, C·P·P] → [B, N, D]
  std::string type() const override { return "Conv2d"; }
  std::string extra() const override;
  void visit(Visitor& visitor) override;

 private:
  Tensor weight_, bias_;
};

// Cuts an image into patches and projects each: [B, C, H, W] → [B, (H/P)(W/P), D], or with flatten false the feature
// map [B, D, H/P, W/P] (Dosovitskiy et al. 2021, eq. 1).  Parameters: proj.weight, proj.bias, and norm.*,
// input_norm.* (its C·P·P pixels in (c, y, x) order) where configured.
// Throws Error for an image size that is not img_size (unless dynamic_img_size) or that the patch size does not divide.
// The constructor checks img_size.  Source: timm's PatchEmbed; the input norm is that of lucidrains' vit-pytorch.
// Traced besides the modules: flattened [B, D, N] and transposed [B, N, D], views of the feature map that proj gives.
class PatchEmbed : public Module {
 public:
  PatchEmbed(const PatchEmbedConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& image) const;
  std::array<int64_t, 2> grid_of(int64_t height,
                                 int64_t width) const;  // rows and columns of patches; throws as forward()
  std::string type() const override { return "PatchEmbed"; }
  void visit(Visitor& visitor) override;

 private:
  PatchEmbedConfig config_;
  std::optional<LayerNorm> input_norm_;
  PatchProjection proj_;
  std::optional<LayerNorm> norm_;
};

}  // namespace vitrail::nn
