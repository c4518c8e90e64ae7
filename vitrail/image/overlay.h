// SPDX-License-Identifier: Apache-2.0
#pragma once
// Visualisation of attention and features: heat maps and colour maps over images, and grids of images.
#include <optional>
#include <span>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/image/transform.h"

namespace vitrail::image {

// One value per patch, [height, width] row-major.
struct HeatMap {
  std::span<const float> values;
  int64_t width = 0, height = 0;
};

struct OverlayOptions {
  double opacity = 0.6;         // weight of the colours, 0 (image only) to 1 (map only)
  std::optional<float> low{};   // value of the darkest colour; default: the map's minimum
  std::optional<float> high{};  // value of the lightest colour; default: the map's maximum
  // The part of the image that the map covers; default: all of it.  Pixels outside become pale.
  std::optional<Region> region{};
};

// Upsamples the map bilinearly to the image's size (values belong to the centres of their cells), colours it with
// heat_colors() and blends it with the image.  A constant map gets the darkest colour.  Returns RGB.  Throws Error if
// the map is empty, has not width · height values, or contains a non-finite value.
Image overlay(const Image& image, const HeatMap& map, const OverlayOptions& options = {});

// A colour per patch, [height, width, 3] row-major, each channel from 0 to 1.
struct ColorMap {
  std::span<const float> colors;
  std::span<const float> shown;  // [height, width], 1: shown, 0: the image becomes pale there
  int64_t width = 0, height = 0;
};

// Upsamples the colours bilinearly and blends them with the image, as the function above.  Of the options, low and high
// have no effect.  Returns RGB.  Throws Error if the map is empty or its sizes do not agree.
Image overlay(const Image& image, const ColorMap& map, const OverlayOptions& options = {});

// The colours from the highest value (top) to the lowest.
Image color_bar(int64_t width, int64_t height);

// Copies an image into an RGB image, with its top left corner at (left, top).  What is outside `target` is cut off.
void paste(const Image& image, int64_t left, int64_t top, Image& target);

// Arranges images of equal size in rows of `columns`, row by row, separated by `gap` white pixels; empty cells are
// white.  columns 0: ⌈√number of images⌉.  Grey images become RGB.  Throws Error if sizes differ or there is no image.
Image grid(std::span<const Image> images, int64_t columns = 0, int64_t gap = 4);

}  // namespace vitrail::image
