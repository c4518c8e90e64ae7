// SPDX-License-Identifier: Apache-2.0
#pragma once
// Point operations: each channel value is mapped through a table of 256 entries.  The pixels equal those of Pillow's
// ImageOps.  In place, for grey and colour images.
#include <array>
#include <cstdint>

#include "vitrail/image/image.h"

namespace vitrail::image {

using PointTable = std::array<uint8_t, 256>;

// One table for all channels, or one per channel.
void apply_table(Image& image, const PointTable& table);
void apply_tables(Image& image, const std::array<PointTable, 3>& tables);

void invert(Image& image);
// Keeps the `bits` (0 to 8) highest bits; 8 changes nothing, 0 gives black (Pillow 13 refuses 0).
void posterize(Image& image, int bits);
void solarize(Image& image, double threshold);  // inverts values of at least `threshold`
void solarize_add(Image& image, int add,
                  int threshold = 128);  // timm: adds to values below `threshold`, clamped to 255
// Stretches each channel to 0 … 255; a constant channel is unchanged.
void autocontrast(Image& image);
// Equalises the histogram of each channel; a channel with too few distinct values is unchanged.
void equalize(Image& image);

}  // namespace vitrail::image
