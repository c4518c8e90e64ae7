// SPDX-License-Identifier: Apache-2.0
#pragma once
// The colour map of heat maps.
#include <array>
#include <cstdint>

namespace vitrail::image {

// 256 sRGB colours from dark violet over red and orange to light yellow.  Lightness increases linearly in OKLab, a
// perceptually uniform space (Ottosson 2020, "A perceptual color space for image processing"), so the map is also
// readable in grey.
const std::array<std::array<uint8_t, 3>, 256>& heat_colors();

}  // namespace vitrail::image
