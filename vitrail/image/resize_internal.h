// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resizing equal to Pillow's Image.resize, pixel for pixel, on 8-bit images.
#include <optional>

#include "vitrail/image/filter.h"
#include "vitrail/image/image.h"

namespace vitrail::image {

// A part of the source picture, in pixels: left ≤ x < right.  Fractions count, as in Pillow's `box`.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// A part of the result, in pixels.
struct Window {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

struct ResizeOptions {
  std::optional<Window> part;    // of the source: resized as if it had been cut out; `box` then counts from its corner
  std::optional<Box> box;        // what is resized; the whole source otherwise
  std::optional<Window> window;  // what of the result is computed and returned; all of it otherwise
};

// The picture at width × height.  Every filter but nearest widens with the reduction, so nothing aliases; the
// arithmetic is Pillow's: weights in double, rounded to 22 fractional bits, a horizontal pass to 8 bits, then a
// vertical one; a pass that changes nothing is left out.  Runs on the calling thread. Throws Error when a size is not
// positive, and when the part, the box or the window lies outside its picture.
Image resize(const Image& source, int64_t width, int64_t height, Filter filter, const ResizeOptions& options = {});

}  // namespace vitrail::image
