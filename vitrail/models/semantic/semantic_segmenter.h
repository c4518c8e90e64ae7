// SPDX-License-Identifier: Apache-2.0
#pragma once
// Semantic segmentation with a Vision Transformer: the logits of classes for each patch or pixel.
#include "vitrail/models/configured_files.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/semantic/heads.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// Parameters: backbone.* with timm's names, head.*.
class SemanticSegmenter : public nn::Module {
 public:
  SemanticSegmenter(const SemanticConfig& config, const ParamSource& params);
  Tensor forward(const Tensor& images) const;         // [B, C, H, W] → [B, h, w, classes]
  Tensor channels_first(const Tensor& images) const;  // the same as [B, classes, h, w], the order of transformers
  const SemanticConfig& config() const { return config_; }
  std::string type() const override { return "SemanticSegmenter"; }
  void visit(nn::Visitor& visitor) override;

 private:
  SemanticConfig config_;
  VisionTransformer backbone_;
  std::unique_ptr<SemanticHeadModule> head_;
};

// Whether weights have the tensors of one.
bool is_semantic_segmenter(const weights::Checkpoint& checkpoint);

using SemanticFiles = ConfiguredFiles<SemanticConfig>;

// Reads vitrail's own folder (write_semantic_config()), or one of transformers' classes that read_semantic_config()
// names.  In vitrail's own, the backbone's tensors may have any known names behind "backbone.", and the head's
// "decode_head." of MMSegmentation instead of "head.".
SemanticFiles open_semantic_segmenter(const ModelFiles& files);

// In eval mode with f32 weights.  Throws one Error that lists all missing, extra and misshapen keys.
SemanticSegmenter load_semantic_segmenter(const SemanticFiles& files);

}  // namespace vitrail::models
