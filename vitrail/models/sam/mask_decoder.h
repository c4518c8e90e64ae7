// SPDX-License-Identifier: Apache-2.0
#pragma once
// Segment Anything's mask decoder (segment_anything/modeling/mask_decoder.py; sam2/modeling/sam/mask_decoder.py).
#include <optional>

#include "vitrail/models/sam/hq_head.h"
#include "vitrail/models/sam/image_encoder.h"
#include "vitrail/models/sam/two_way_transformer.h"

namespace vitrail::models {

struct SamMasks {
  Tensor logits;             // [B, M, 4·h, 4·w]: mask 0 for a single mask, the others for three of different extent
  Tensor iou;                // [B, M], predicted
  Tensor object_score = {};  // [B, 1], the logit of an object being there; undefined for models without one
};

// A map that the mask decoder reads beside the embedding of an image, and its extents without the batch.
struct SamFeature {
  std::string name;
  Shape shape;  // [rows, columns, channels]
};

class SamMaskDecoder : public nn::Module {
 public:
  SamMaskDecoder(const SamConfig& config, const ParamSource& params);
  // The tokens of the scores and of the masks in front of prompts [B, N, C], N may be 0 → [B, 1 + M + N, C], with an
  // object score [B, 2 + M + N, C].
  Tensor tokens(const Tensor& prompts) const;
  // The names and extents of image_features(): one of HQ-SAM, two of SAM 2, else none.
  std::vector<SamFeature> features() const;
  // What forward() reads of an image beside its embedding, the same for all its prompts: [B, …] each.
  std::vector<Tensor> image_features(const SamMaps& maps) const;
  // image: embedding plus mask prompt [1 or B, h, w, C]; positions [1, h, w, C]; tokens of tokens(); maps of
  // image_features(), with a batch of 1 or B; projections of project(image), where they are known.  In a compiled
  // function the tokens must be an input: without prompts they are constants, and no layer would be recorded for them.
  SamMasks forward(const Tensor& image, const Tensor& positions, const Tensor& tokens,
                   const std::vector<Tensor>& maps = {}, const Tensor& projections = {}) const;
  // What forward() projects of the image before it meets a token, query, key and value, [3, h·w, C/r].
  Tensor project(const Tensor& image, const Tensor& positions) const;
  const SamHqHead* hq_head() const { return hq_head_ ? &*hq_head_ : nullptr; }
  std::string type() const override { return "MaskDecoder"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SamConfig config_;
  SamTwoWayTransformer transformer_;
  Tensor object_token_, iou_token_, mask_tokens_;
  SamUpscaling upscaling_;
  nn::ModuleList<nn::DetrMlp> hypernetworks_;
  nn::DetrMlp iou_head_;
  std::optional<SamHqHead> hq_head_;
  std::optional<nn::DetrMlp> object_head_;
  std::optional<nn::Conv2d> fine_conv_, middle_conv_;  // They read the maps of strides 4 and 8.
};

}  // namespace vitrail::models
