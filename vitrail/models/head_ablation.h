// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/base/callbacks.h"
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// Mean ablation of attention heads: how much the logits change when the output of one head, softmax(q kᵀ / √d) v, is
// replaced by its mean over the tokens of its image (as in TransformerLens; Michel et al. 2019, "Are sixteen heads
// really better than one?", use 0).  images [B, C, H, W] → [blocks, heads, B, classes] in units of the logits: those of
// the model without the head, minus the model's.  `progress` is called before each block, and may throw.  Throws Error
// for a model without a classifier of pooled features.
Tensor head_ablation(const VisionTransformer& model, const Tensor& images, const ProgressCallback& progress = {});

}  // namespace vitrail::models
