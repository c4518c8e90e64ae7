// SPDX-License-Identifier: Apache-2.0
#pragma once
// Polygons as masks.
#include <span>
#include <string>

#include "vitrail/sam/rle.h"

namespace vitrail::sam {

// Throws Error naming `where` for fewer than 3 corners, and for corners that are not finite or further outside the
// image than its own size.
void check_polygon(std::span<const double> corners, int64_t width, int64_t height, const std::string& where);

// The pixels of a polygon x0, y0, x1, y1, …, as COCO's API fills it (cocoapi, common/maskApi.c, rleFrPoly).  Throws
// Error as check_polygon().
Rle polygon_mask(std::span<const double> corners, int64_t width, int64_t height, const std::string& where);

}  // namespace vitrail::sam
