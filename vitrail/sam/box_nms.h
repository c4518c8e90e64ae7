// SPDX-License-Identifier: Apache-2.0
#pragma once
// Non-maximum suppression of boxes (torchvision.ops.nms).
#include <cstddef>
#include <span>
#include <vector>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

// The indices of the boxes that remain, the highest score first; equal scores keep their order.  A box is suppressed if
// its intersection over union with a remaining box of a higher score is above the threshold.  Areas are
// (x1 − x0) · (y1 − y0) in f32, as in torchvision; boxes without area suppress nothing.  Throws Error if the numbers of
// boxes and scores differ.
std::vector<size_t> box_nms(std::span<const PixelBox> boxes, std::span<const float> scores, double iou_threshold);

}  // namespace vitrail::sam
