// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's mask decoder (segment_anything/modeling/mask_decoder.py).
#include "vitrail/models/sam/two_way_transformer.h"
#include "vitrail/nn/convolution.h"

namespace vitrail::models {

// Linear layers "layers.0", "layers.1", … with ReLU between them.
class SamMlp : public nn::Module {
 public:
  SamMlp(int64_t in, int64_t hidden, int64_t out, const ParamSource& params);
  Tensor forward(const Tensor& x) const;
  std::string type() const override { return "MLP"; }
  void visit(nn::Visitor& visitor) override;

 private:
  nn::ModuleList<nn::Linear> layers_;
};

struct SamMasks {
  Tensor logits;  // [B, M, 4·h, 4·w]: mask 0 for a single mask, the others for three of different extent
  Tensor iou;     // [B, M], predicted
};

class SamMaskDecoder : public nn::Module {
 public:
  SamMaskDecoder(const SamConfig& config, const ParamSource& params);
  // The tokens of the score and of the masks in front of prompts [B, N, C], N may be 0 → [B, 1 + M + N, C].
  Tensor tokens(const Tensor& prompts) const;
  // image: embedding plus mask prompt [1 or B, h, w, C]; positions [1, h, w, C]; tokens of tokens().  In a compiled
  // function the tokens must be an input: without prompts they are constants, and no layer would be recorded for them.
  SamMasks forward(const Tensor& image, const Tensor& positions, const Tensor& tokens) const;
  std::string type() const override { return "MaskDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  Tensor upscaled(const Tensor& image) const;  // [B, h, w, C] → [B, 4·h, 4·w, C / 8]

  SamConfig config_;
  SamTwoWayTransformer transformer_;
  Tensor iou_token_, mask_tokens_;
  nn::ConvTranspose2d upscale1_;
  nn::LayerNorm upscale_norm_;
  nn::ConvTranspose2d upscale2_;
  nn::ModuleList<SamMlp> hypernetworks_;
  SamMlp iou_head_;
};

}  // namespace vitrail::models
