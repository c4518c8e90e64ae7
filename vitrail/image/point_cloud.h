// SPDX-License-Identifier: Apache-2.0
#pragma once
// Points in space from a depth map.
#include <cstdint>
#include <span>
#include <vector>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The focal length in pixels of an image `width` pixels wide with a horizontal field of view in degrees, above 0 and
// below 180.
double focal_length(double field_of_view, int64_t width);

// The bytes of a PLY file (binary, little-endian): for each pixel of positive depth, row by row, x, y, z as float32 in
// the depth's unit, and red, green, blue.  The camera is a pinhole with square pixels and its principal point at the
// image's centre; x points right, y down, z forward, and depth is z.  photo: RGB, of the map's size.  Throws Error for
// another photo or focal length.
std::vector<uint8_t> encode_ply(std::span<const float> depth, const Image& photo, double focal_length);

}  // namespace vitrail::image
