// SPDX-License-Identifier: Apache-2.0
#pragma once
// Losses of detectors: scalars, sums over boxes or logits.  Differentiable in the first argument; f64 is computed in
// f64, others in f32.  Boxes are [N, 4]: centre x, centre y, width and height, with positive widths and heights.
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

// Σ |boxes − targets|
Tensor box_l1_loss(const Tensor& boxes, const Tensor& targets);

// Σ (1 − GIoU) over pairs of boxes.  GIoU is the IoU minus the share of the smallest box around both that neither
// covers (Rezatofighi et al. 2019, "Generalized Intersection over Union").
Tensor giou_loss(const Tensor& boxes, const Tensor& targets);

// The IoU-aware classification loss of LW-DETR (Chen et al. 2024): Σ over logits, with p = σ(logit), of
// −q log p − (1 − q) log(1 − p) where the quality q is positive, and −p² log(1 − p) where it is 0.
// logits and qualities [...] of one shape, qualities in [0, 1].
Tensor iou_aware_loss(const Tensor& logits, const Tensor& qualities);

struct BoxOverlap {
  double iou = 0, giou = 0;
};

// The overlap of two boxes of four values each.
BoxOverlap box_overlap(const float* a, const float* b);

}  // namespace vitrail::ops
