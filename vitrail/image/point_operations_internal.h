// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operations that map each channel's 256 values through a table, equal to Pillow's ImageOps, pixel for pixel.
// In place, on grey and colour images.
#include <array>
#include <cstdint>

#include "vitrail/image/image.h"

namespace vitrail::image {

using PointTable = std::array<uint8_t, 256>;

// Every channel through the same table, or each through its own.
void apply_table(Image& image, const PointTable& table);
void apply_tables(Image& image, const std::array<PointTable, 3>& tables);

void invert(Image& image);
// Keeps the `bits` (0 to 8) highest bits; 8 changes nothing, 0 gives black (which Pillow 13 refuses).
void posterize(Image& image, int bits);
void solarize(Image& image, double threshold);                  // inverts the values from threshold up
void solarize_add(Image& image, int add, int threshold = 128);  // timm: adds to the values below, up to 255
// Each channel stretched to 0 … 255; a channel of one value stays as it is.
void autocontrast(Image& image);
// Each channel's histogram made as even as a table can; too few different pixels for that change nothing.
void equalize(Image& image);

}  // namespace vitrail::image
