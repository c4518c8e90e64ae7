// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/models/vision_transformer.h"

namespace vitrail::models {

// The hidden units of a block's MLP for each token, which fc2 reads: behind the activation, or for SwiGLU behind its
// gate.  images [B, C, H, W] → [B, prefix + N, hidden].  Blocks behind it do not run.  block: from 0; negative ones
// count from the end.  Throws Error for no block of the model.
Tensor hidden_activations(const VisionTransformer& model, const Tensor& images, int64_t block);

}  // namespace vitrail::models
