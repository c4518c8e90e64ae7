// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses of masks, a value for each mask.  Differentiable in the logits; f64 logits are computed in f64, others in f32.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct FocalOptions {
  double alpha = 0.25;  // weight of pixels in the object; the others have 1 − alpha
  double gamma = 2;     // 0, or at least 1
};

// The focal loss (Lin et al. 2017), −α_t (1 − p_t)^γ log p_t, as the mean over the pixels of a mask.  logits [B, M, P]
// of M masks per object, targets [B, P] in [0, 1] → [B, M].  Source: torchvision.ops.sigmoid_focal_loss.
Tensor focal_loss(const Tensor& logits, const Tensor& targets, const FocalOptions& options = {});

// The dice loss (Milletari et al. 2016), 1 − (2 Σ p t + 1) / (Σ p + Σ t + 1) with p = σ(logits).  Shapes as above.
// Source: dice_loss of DETR and MaskFormer.
Tensor dice_loss(const Tensor& logits, const Tensor& targets);

}  // namespace vitrail::ops
