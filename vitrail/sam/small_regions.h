// SPDX-License-Identifier: Apache-2.0
#pragma once
// Removal of small holes and islands of masks (segment_anything.utils.amg, remove_small_regions).
#include <cstdint>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

enum class SmallRegions {
  holes,    // regions outside the mask are filled
  islands,  // regions of the mask are removed; if all are small, the largest remains
};

// Removes 8-connected regions of less than `area` pixels.  Returns whether there were any.
bool remove_small_regions(BinaryMask& mask, int64_t area, SmallRegions kind);

}  // namespace vitrail::sam
