// SPDX-License-Identifier: Apache-2.0
#pragma once
// Connected components of binary masks, with 8 neighbours.
#include <cstdint>
#include <vector>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

struct Components {
  std::vector<int32_t> labels;  // [height, width]: 0 outside, else the component's number from 1
  std::vector<int64_t> sizes;   // pixels of component i + 1
  // The place of component i + 1 in the order of OpenCV's labels: its first 2 × 2 block, row by row of blocks.
  std::vector<int64_t> first_blocks;
};

// The components of the pixels that have `value`.  Throws Error for masks of 2^31 pixels and more.
Components components_of(const BinaryMask& mask, uint8_t value);

}  // namespace vitrail::sam
