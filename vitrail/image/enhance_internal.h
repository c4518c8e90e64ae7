// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pillow's ImageEnhance and torchvision's hue shift, pixel for pixel.  In place, on grey and colour images.
//
// An enhancement is degenerate + factor · (image − degenerate) in single precision, cut off to 8 bits: 1 changes
// nothing, 0 gives the degenerate picture, more than 1 goes beyond the original.
#include "vitrail/image/image.h"

namespace vitrail::image {

void adjust_brightness(Image& image, double factor);  // degenerate: black
void adjust_contrast(Image& image, double factor);    // the mean of the grey picture, rounded
void adjust_color(Image& image, double factor);       // the grey picture (saturation)
void adjust_sharpness(Image& image, double factor);   // smoothed 3×3 with 5/13 in the middle, edges as they are
// Turns the hue by `shift` of the circle, −0.5 to 0.5, in Pillow's 8-bit HSV; grey images stay as they are.
void adjust_hue(Image& image, double shift);

}  // namespace vitrail::image
