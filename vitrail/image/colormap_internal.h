// SPDX-License-Identifier: Apache-2.0
#pragma once
// The colours of heat maps.
#include <array>
#include <cstdint>

namespace vitrail::image {

// 256 colours from dark violet over red and orange to light yellow.  Lightness rises by equal steps of OKLab, in which
// equal steps look equal (Ottosson 2020, "A perceptual color space for image processing"), so that the map also reads
// in grey.
const std::array<std::array<uint8_t, 3>, 256>& heat_colors();

}  // namespace vitrail::image
