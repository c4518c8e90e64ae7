// SPDX-License-Identifier: Apache-2.0
#pragma once
// Affine maps of images; the pixels equal those of Pillow's Image.transform(AFFINE) and Image.rotate.
#include <array>
#include <cstdint>

#include "vitrail/image/filter.h"
#include "vitrail/image/image.h"

namespace vitrail::image {

// Maps a result position (x, y) to the source position (a x + b y + c, d x + e y + f).  Pixel centres are at halves.
using AffineMatrix = std::array<double, 6>;

using Fill = std::array<uint8_t, 3>;  // one value per channel; grey images use the first

// A map about the image's centre, as torchvision's affine() builds it: rotation, scale, translation.
struct AffineParts {
  double degrees = 0;               // clockwise
  double shift_x = 0, shift_y = 0;  // pixels
  double scale = 1;                 // positive
};
AffineMatrix affine_matrix(const AffineParts& parts, int64_t width, int64_t height);

// Samples the source at the mapped positions; the result has the source's size, and pixels from outside the source are
// `fill`.  The filters are nearest, bilinear and bicubic as in Pillow's transform: without antialiasing, cubic with
// a = −1.  Throws Error for another filter.
Image affine(const Image& source, const AffineMatrix& matrix, Filter filter, const Fill& fill);

// Rotates counter-clockwise about the centre.  180° is exact, and 90° and 270° are exact for square images.
Image rotate(const Image& source, double degrees, Filter filter, const Fill& fill);

}  // namespace vitrail::image
