// SPDX-License-Identifier: Apache-2.0
#pragma once
// Affine maps of pictures, equal to Pillow's Image.transform(AFFINE) and Image.rotate, pixel for pixel.
#include <array>
#include <cstdint>

#include "vitrail/image/filter.h"
#include "vitrail/image/image.h"

namespace vitrail::image {

// The source position of a result position: (a x + b y + c, d x + e y + f), pixel centres at halves.
using AffineMatrix = std::array<double, 6>;

using Fill = std::array<uint8_t, 3>;  // one value a channel; grey images take the first

// The map about the picture's centre as torchvision's affine() builds it: turned by `degrees` (clockwise), scaled, then
// shifted.
struct AffineParts {
  double degrees = 0;
  double shift_x = 0, shift_y = 0;  // pixels
  double scale = 1;                 // above 0
};
AffineMatrix affine_matrix(const AffineParts& parts, int64_t width, int64_t height);

// The picture of the same size whose pixels come from where the matrix says; those from outside are `fill`.
// The filter is nearest, bilinear or bicubic (Pillow's: without antialiasing, cubic with a = −1).  Throws Error for
// another one.
Image affine(const Image& source, const AffineMatrix& matrix, Filter filter, const Fill& fill);

// Turned counter-clockwise about the centre; quarter turns are exact where the shape allows.
Image rotate(const Image& source, double degrees, Filter filter, const Fill& fill);

}  // namespace vitrail::image
