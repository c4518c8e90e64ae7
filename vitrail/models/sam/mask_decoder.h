// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's mask decoder (segment_anything/modeling/mask_decoder.py).
#include <optional>

#include "vitrail/models/sam/hq_head.h"
#include "vitrail/models/sam/two_way_transformer.h"

namespace vitrail::models {

struct SamMasks {
  Tensor logits;  // [B, M, 4·h, 4·w]: mask 0 for a single mask, the others for three of different extent
  Tensor iou;     // [B, M], predicted
};

class SamMaskDecoder : public nn::Module {
 public:
  SamMaskDecoder(const SamConfig& config, const ParamSource& params);
  // The tokens of the score and of the masks in front of prompts [B, N, C], N may be 0 → [B, 1 + M + N, C].
  Tensor tokens(const Tensor& prompts) const;
  // image: embedding plus mask prompt [1 or B, h, w, C]; positions [1, h, w, C]; tokens of tokens(); hq_features of
  // hq_head(), for a model that has it; projections of project(image), where they are known.  In a compiled function
  // the tokens must be an input: without prompts they are constants, and no layer would be recorded for them.
  SamMasks forward(const Tensor& image, const Tensor& positions, const Tensor& tokens, const Tensor& hq_features = {},
                   const Tensor& projections = {}) const;
  // What forward() projects of the image before it meets a token, query, key and value, [3, h·w, C/r].
  Tensor project(const Tensor& image, const Tensor& positions) const;
  const SamHqHead* hq_head() const { return hq_head_ ? &*hq_head_ : nullptr; }
  std::string type() const override { return "MaskDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamConfig config_;
  SamTwoWayTransformer transformer_;
  Tensor iou_token_, mask_tokens_;
  SamUpscaling upscaling_;
  nn::ModuleList<nn::DetrMlp> hypernetworks_;
  nn::DetrMlp iou_head_;
  std::optional<SamHqHead> hq_head_;
};

}  // namespace vitrail::models
