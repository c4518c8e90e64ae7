// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loss of Segment Anything's predictions (Kirillov et al. 2023, appendix A, "Losses").
#include <vector>

#include "vitrail/models/sam/mask_decoder.h"
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"

namespace vitrail::train {

struct SegmentLoss {
  Tensor loss;                // a scalar
  std::vector<int64_t> best;  // [B] the mask of lowest loss among those of different extent, from 1
  Tensor iou;                 // [B, M] of the predictions with the targets, not differentiable
};

// targets [B, 4·h, 4·w] of 0 and 1.  Per sample, mask 0 and the best of the others contribute
// focal_weight · focal + dice_weight · dice, so that three masks of an ambiguous prompt can differ, and all masks
// contribute iou_weight · the squared error of their predicted IoU.  The loss is the mean over the samples.
SegmentLoss segment_loss(const models::SamMasks& masks, const Tensor& targets, const SegmentRecipe& recipe);

}  // namespace vitrail::train
