// SPDX-License-Identifier: Apache-2.0
#pragma once
// Prompts that training draws from a mask (Kirillov et al. 2023, appendix A, "Training algorithm").
#include <optional>
#include <vector>

#include "vitrail/base/random.h"
#include "vitrail/sam/binary_mask.h"
#include "vitrail/sam/prompt.h"

namespace vitrail::train {

// A uniformly drawn pixel of a mask, as a click on it with this label.  The mask must not be empty.
sam::Point click_in(const sam::BinaryMask& mask, int label, RandomStream& random);

// The bounding box with noise on each side: a normal deviation of a tenth of the box's side, at most 20 pixels of 1024.
// It stays in the frame and keeps an area.
sam::Box jittered_box(const sam::BinaryMask& mask, RandomStream& random);

// A click where `predicted` and `target` differ, in the frame whose cells both are: a pixel inside a uniformly drawn
// wrong cell, with the label of the target.  Nothing if both are equal.  cell: pixels of the frame per cell.
std::optional<sam::Point> correction_click(const sam::BinaryMask& predicted, const sam::BinaryMask& target, double cell,
                                           RandomStream& random);

}  // namespace vitrail::train
