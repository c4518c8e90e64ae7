// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pillow's conversions between colour modes.
#include <array>
#include <cstdint>
#include <span>

#include "vitrail/image/image.h"

namespace vitrail::image {

// ITU-R 601-2 luma in 16-bit fixed point, rounded: Pillow's convert("L").
inline uint8_t luma(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

void rgb_to_grey(const uint8_t* rgb, int64_t pixels, uint8_t* grey);
void grey_to_rgb(const uint8_t* grey, int64_t pixels, uint8_t* rgb);
// Inverted CMYK (255 = no ink), which Adobe programs write and Pillow assumes for every CMYK JPEG.
void inverted_cmyk_to_rgb(const uint8_t* cmyk, int64_t pixels, uint8_t* rgb);

// CIE L*a*b* of illuminant D50 in bytes (L* · 2.55, signed a* and b*), as TIFF has it, to sRGB.  LittleCMS, which
// Pillow uses, interpolates a table: the mean difference is below 1.
void cielab_to_rgb(const uint8_t* lab, int64_t pixels, uint8_t* rgb);

// 256 RGB colours; entries that the file omits are black.
using Palette = std::array<std::array<uint8_t, 3>, 256>;
Image from_palette(std::span<const uint8_t> indices, int64_t width, int64_t height, const Palette& palette,
                   ColorMode mode);

// Converts to the channels of `mode`; moves the image if it already has them.
Image to_mode(Image image, ColorMode mode);

}  // namespace vitrail::image
