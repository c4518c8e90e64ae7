// SPDX-License-Identifier: Apache-2.0
#pragma once
// Masks as polygons.
#include <cstdint>
#include <vector>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

struct Corner {
  int64_t x = 0, y = 0;
  bool operator==(const Corner&) const = default;
};

// A ring of corners of pixels, each side horizontal or vertical.  The last corner is joined to the first.
using Ring = std::vector<Corner>;

// An 8-connected component.  The outer ring is clockwise on the screen, holes are counterclockwise.
struct Polygon {
  Ring outer = {};
  std::vector<Ring> holes = {};
};

// One polygon for each component.  The rings run along the edges of pixels, pixel (x, y) being the square from (x, y)
// to (x + 1, y + 1), so that the even-odd rule gives the mask again, and the polygons' area is the number of pixels.
std::vector<Polygon> polygons_of(const BinaryMask& mask);

// Σ (x y' − x' y) / 2: positive for outer rings, negative for holes.
int64_t signed_area(const Ring& ring);

}  // namespace vitrail::sam
