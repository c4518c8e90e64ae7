// SPDX-License-Identifier: Apache-2.0
#pragma once
// The layers that HQ-SAM adds to the mask decoder (Ke et al. 2023, "Segment Anything in High Quality"; SysCV/sam-hq,
// mask_decoder_hq.py).  A token of their own gives one more mask, which is added to each of the others.
#include <span>

#include "vitrail/models/sam/config.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/detr_mlp.h"
#include "vitrail/nn/layer_norm.h"

namespace vitrail::models {

// Two transposed convolutions that enlarge a map four times, with a norm and GELU between them: [B, h, w, in] → [B,
// 4·h, 4·w, out], and an activation of the result.  Parameters: 0, 1, 3, as in a Sequential with GELU at 2.
class SamUpscaling : public nn::Module {
 public:
  SamUpscaling(int64_t in, int64_t hidden, int64_t out, const ParamSource& params);
  // fine_maps: [1 or B, 2·h, 2·w, hidden] and [1 or B, 4·h, 4·w, out], which SAM 2 adds to the results of the two; or
  // none.
  Tensor forward(const Tensor& x, kernels::Activation activation = kernels::Activation::none,
                 std::span<const Tensor> fine_maps = {}) const;
  std::string type() const override { return "Sequential"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ConvTranspose2d conv1_;
  nn::LayerNorm norm_;
  nn::ConvTranspose2d conv2_;
};

// Parameters, beside those of the mask decoder: hf_token, hf_mlp, compress_vit_feat, embedding_encoder,
// embedding_maskfeature.
class SamHqHead : public nn::Module {
 public:
  SamHqHead(const SamConfig& config, const ParamSource& params);
  // The same for all prompts of an image: embedding [B, h, w, C], intermediate [B, h, w, D] of SamTrunk →
  // [B, 4·h, 4·w, C / 8].
  Tensor features(const Tensor& embedding, const Tensor& intermediate) const;
  const Tensor& token() const { return token_; }                      // [1, C]
  int64_t intermediate_width() const { return intermediate_width_; }  // D
  // token [B, 1, C], the transformer's output at token(); cells [B, 4·h, 4·w, C / 8], the decoder's enlarged map;
  // features [1 or B, 4·h, 4·w, C / 8] → logits [B, 1, 16·h·w].
  Tensor mask(const Tensor& token, const Tensor& cells, const Tensor& features) const;
  std::string type() const override { return "HighQualityHead"; }
  void visit(nn::Visitor& visitor) override;

 private:
  int64_t intermediate_width_;
  Tensor token_;
  nn::DetrMlp mlp_;
  SamUpscaling block_upscaling_, embedding_upscaling_;
  nn::Conv2d conv1_;
  nn::LayerNorm norm_;
  nn::Conv2d conv2_;
};

}  // namespace vitrail::models
