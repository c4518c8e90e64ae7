// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images as the input of the image encoder.
#include <array>
#include <cstdint>

#include "vitrail/image/image_view.h"

namespace vitrail::sam {

// Height and width of an image whose long side is resized to `size`.
std::array<int64_t, 2> resized_sides(int64_t height, int64_t width, int64_t size);

// The image as RGB with its long side resized to `size`, as Pillow's BILINEAR.  Throws Error for an image whose short
// side would be resized to nothing.
image::Image resized_image(const image::ImageView& view, int64_t size);

// Writes the normalised image with zeros on the right and below to `input` [3, size, size].
void write_input(const image::Image& resized, int64_t size, float* input);

}  // namespace vitrail::sam
