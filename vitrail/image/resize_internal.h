// SPDX-License-Identifier: Apache-2.0
#pragma once
// Resizing of 8-bit images; the pixels equal those of Pillow's Image.resize.
#include <optional>

#include "vitrail/image/filter.h"
#include "vitrail/image/image_view.h"

namespace vitrail::image {

// A rectangle of the source in pixels, left ≤ x < right; may have fractions, as Pillow's `box`.
struct Box {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// A rectangle of integer pixels.
struct Window {
  int64_t left = 0, top = 0, width = 0, height = 0;
};

struct ResizeOptions {
  std::optional<Window> crop;    // resizes this crop of the source; `box` is then relative to it.  Default: no crop
  std::optional<Box> box;        // the part of the (cropped) source that is resampled.  Default: all of it
  std::optional<Window> window;  // the part of the result that is computed and returned.  Default: all of it
};

// Resamples to width × height.  Filters except nearest are widened by the reduction factor (antialiasing).  The
// arithmetic is Pillow's: weights in double rounded to 22 fractional bits, a pass along x rounded to 8 bits, then a
// pass along y; a pass that changes nothing is skipped.  Runs on the calling thread.  The result has the channels of
// the source, in its order.  Throws Error if a size is not positive, crop, box or window is not inside its image, or
// the source has 4 channels.
Image resize(const ImageView& source, int64_t width, int64_t height, Filter filter, const ResizeOptions& options = {});

}  // namespace vitrail::image
