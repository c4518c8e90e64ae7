// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/small_regions.h"

#include <algorithm>

#include "vitrail/sam/components_internal.h"

namespace vitrail::sam {
namespace {

// The first of equal sizes in the order of OpenCV's labels.
size_t largest_of(const Components& components) {
  size_t best = 0;
  for (size_t i = 1; i < components.sizes.size(); ++i) {
    const bool larger = components.sizes[i] > components.sizes[best];
    const bool earlier =
        components.sizes[i] == components.sizes[best] && components.first_blocks[i] < components.first_blocks[best];
    if (larger || earlier) best = i;
  }
  return best;
}

}  // namespace

bool remove_small_regions(BinaryMask& mask, int64_t area, SmallRegions kind) {
  const bool holes = kind == SmallRegions::holes;
  const Components components = components_of(mask, holes ? 0 : 1);
  const auto is_small = [&](int64_t size) { return size < area; };
  if (std::ranges::none_of(components.sizes, is_small)) return false;
  std::vector<uint8_t> in_mask(components.sizes.size() + 1, 0);  // Label 0 is outside of all regions.
  in_mask[0] = holes ? 1 : 0;
  for (size_t i = 0; i < components.sizes.size(); ++i) in_mask[i + 1] = is_small(components.sizes[i]) == holes;
  if (!holes && std::ranges::all_of(components.sizes, is_small)) in_mask[largest_of(components) + 1] = 1;
  for (size_t i = 0; i < mask.pixels.size(); ++i) {
    mask.pixels[i] = in_mask[static_cast<size_t>(components.labels[i])];
  }
  return true;
}

}  // namespace vitrail::sam
