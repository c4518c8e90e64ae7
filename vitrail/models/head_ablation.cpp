// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/head_ablation.h"

#include "vitrail/models/classifier_internal.h"

namespace vitrail::models {

Tensor head_ablation(const VisionTransformer& model, const Tensor& images, const ProgressCallback& progress) {
  const VisionTransformerConfig& config = model.config();
  require_classifier_of_images(config, "head ablation");
  const Tensor logits = model.forward_head(model.forward_features(images)).contiguous();
  Tensor changes = Tensor::zeros({config.depth, config.num_heads, logits.size(0), logits.size(1)});
  auto* change = changes.data<float>();
  for (int64_t block = 0; block < config.depth; ++block) {
    if (progress) progress(block, config.depth);
    for (const Tensor& tokens : model.ablate_heads(images, block)) {
      const Tensor ablated = model.forward_head(tokens).contiguous();
      for (int64_t i = 0; i < ablated.numel(); ++i) *change++ = ablated.data<float>()[i] - logits.data<float>()[i];
    }
  }
  return changes;
}

}  // namespace vitrail::models
