// SPDX-License-Identifier: Apache-2.0
#pragma once
// The crops of an image and the grids of points in them (segment_anything.utils.amg).
#include <array>
#include <cstdint>
#include <vector>

#include "vitrail/sam/binary_mask.h"

namespace vitrail::sam {

struct Crop {
  PixelBox box = {};  // without column x1 and row y1
  int64_t layer = 0;  // 0: the whole image
};

// The whole image, then for layer 1 to `layers` the 2^layer × 2^layer crops, column by column.  Crops of layer 1
// overlap by `overlap_ratio` of the image's shorter side, those of each further layer by half of that.  Throws Error
// for sizes below 1, layers outside 0 to 8, and a ratio outside 0 to 1.
std::vector<Crop> crops_of(int64_t width, int64_t height, int64_t layers, double overlap_ratio);

// Centres of side × side equal cells of the unit square, row by row: (x, y).  Throws Error for a side below 1.
std::vector<std::array<double, 2>> point_grid(int64_t side);

}  // namespace vitrail::sam
