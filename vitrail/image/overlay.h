// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pictures of attention: a heat map over an image, and several pictures side by side.
#include <optional>
#include <span>
#include <vector>

#include "vitrail/image/image.h"

namespace vitrail::image {

// A map of values over an image, [height, width] row-major: one per patch.
struct HeatMap {
  std::span<const float> values;
  int64_t width = 0, height = 0;
};

struct OverlayOptions {
  double opacity = 0.6;       // of the colours: 0 shows the image alone, 1 the map alone
  std::optional<float> low;   // the value of the darkest colour; the map's least one otherwise
  std::optional<float> high;  // the value of the lightest colour; the map's greatest one otherwise
};

// The map, enlarged bilinearly to the image's size (a value stands at the middle of its cell), coloured by
// heat_colors() and laid over the image.  A map of equal values is all dark.  The result is RGB. Throws Error when the
// map is empty, has not width · height values, or holds one that is not finite.
Image overlay(const Image& image, const HeatMap& map, const OverlayOptions& options = {});

// Pictures of one size in rows of `columns`, `gap` white pixels apart, row by row; places that stay empty are white.
// columns 0: as near to a square as it gets.  Grey pictures become RGB.  Throws Error when sizes differ or none is
// given.
Image grid(std::span<const Image> pictures, int64_t columns = 0, int64_t gap = 4);

}  // namespace vitrail::image
