// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rectangles, lines and the colours of classes, for figures.
#include <array>

#include "vitrail/image/image.h"

namespace vitrail::image {

using PixelColor = std::array<uint8_t, 3>;

// PASCAL VOC's colour map (Everingham et al. 2010): the bits of the id, from the lowest, are those of the channels from
// the highest.  It is black for 0.
PixelColor voc_color(int64_t id);

// Pixels left ≤ x < right, top ≤ y < bottom.
struct Rectangle {
  int64_t left = 0, top = 0, right = 0, bottom = 0;
};

// Fills a rectangle of an RGB image.  What is outside the image is cut off.
void fill_rectangle(const Rectangle& rectangle, const PixelColor& color, Image& image);

// Draws its outline, `width` pixels wide and inside it.
void draw_rectangle(const Rectangle& rectangle, int64_t width, const PixelColor& color, Image& image);

// A position in pixels; pixel centres are at integers.
struct Position {
  double x = 0, y = 0;
};

// Draws the pixels whose centres are at most `radius` from the line between two positions: a disc if they are the same.
void draw_line(const Position& from, const Position& to, double radius, const PixelColor& color, Image& image);

}  // namespace vitrail::image
