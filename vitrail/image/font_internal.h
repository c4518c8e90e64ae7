// SPDX-License-Identifier: Apache-2.0
#pragma once
// A font of 5 × 8 dots for the printable ASCII characters.
#include <array>
#include <cstddef>
#include <cstdint>

namespace vitrail::image {

// Columns from left to right; bit 0 is the top dot, bit 6 on the baseline.
using Glyph = std::array<uint8_t, 5>;

const Glyph& glyph_of(char character);  // that of '?' for other characters

}  // namespace vitrail::image
