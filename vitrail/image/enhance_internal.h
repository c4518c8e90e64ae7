// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pillow's ImageEnhance and torchvision's hue shift, with equal pixels, in place, for grey and colour images.
//
// An enhancement is degenerate + factor · (image − degenerate) in single precision, clamped to 8 bits.  Factor 1 leaves
// the image unchanged, 0 gives the degenerate image.
#include "vitrail/image/image.h"

namespace vitrail::image {

void adjust_brightness(Image& image, double factor);  // degenerate: black
void adjust_contrast(Image& image, double factor);    // degenerate: the rounded mean of the grey image
void adjust_color(Image& image, double factor);       // saturation; degenerate: the grey image
void adjust_sharpness(Image& image, double factor);   // degenerate: smoothed (3×3, centre 5/13), edges unchanged
// Rotates the hue by `shift`, a fraction of the colour circle in [−0.5, 0.5], in Pillow's 8-bit HSV.  Grey images are
// unchanged.
void adjust_hue(Image& image, double shift);

}  // namespace vitrail::image
