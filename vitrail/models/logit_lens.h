// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// The logit lens: the classifier on the tokens after each block, as if it were the last one: norm, pooling and head
// (nostalgebraist 2020; Vilas et al. 2023 for image classifiers).  images [B, C, H, W] → [B, classes] for each block;
// the last are the model's logits.  Throws Error for a model without a classifier of pooled features.
std::vector<Tensor> logit_lens(const VisionTransformer& model, const Tensor& images);

}  // namespace vitrail::models
