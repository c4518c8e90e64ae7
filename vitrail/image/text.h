// SPDX-License-Identifier: Apache-2.0
#pragma once
// Captions: text in a built-in font of dots.
#include <array>
#include <string>

#include "vitrail/image/image.h"

namespace vitrail::image {

// The size of a line in pixels; a dot of the font is `scale` × `scale` pixels.  Characters outside ASCII are one '?'.
int64_t text_width(const std::string& text, int64_t scale);
int64_t line_height(int64_t scale);

// Draws a line with its top left corner at (left, top) of an RGB image.  What is outside the image is cut off.
void draw_text(const std::string& text, int64_t left, int64_t top, int64_t scale, Image& image,
               const std::array<uint8_t, 3>& color = {0, 0, 0});

}  // namespace vitrail::image
