// SPDX-License-Identifier: Apache-2.0
#pragma once
// COCO's run-length encoding of binary masks (cocoapi, common/maskApi.c).
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

// The lengths of the runs in column-major order: outside the object, inside, outside, …; the first may be 0.
struct Rle {
  int64_t width = 0, height = 0;
  std::vector<uint32_t> counts = {};
  bool operator==(const Rle&) const = default;
};

Rle encode(const BinaryMask& mask);

// Throws Error unless the runs add up to the size.
BinaryMask decode(const Rle& rle);

int64_t area(const Rle& rle);

// The bytes of pycocotools' "counts": differences to the run before the last one, five bits a character.
std::string to_coco(const Rle& rle);

// The inverse.  Throws Error naming `where` for characters outside the encoding, a text that ends within a run, and
// runs that do not add up to the size.
Rle from_coco(std::string_view counts, int64_t width, int64_t height, const std::string& where);

}  // namespace vitrail::sam
