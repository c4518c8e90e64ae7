// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/text.h"

#include "vitrail/image/draw.h"
#include "vitrail/image/font_internal.h"

namespace vitrail::image {
namespace {

constexpr int64_t kGlyphWidth = 5, kGlyphHeight = 8;
constexpr int64_t kAdvance = kGlyphWidth + 1, kLine = kGlyphHeight + 2;  // with the space between letters and lines

// One '?' for each character outside ASCII.
std::string ascii(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 && byte < 0xc0) continue;  // a continuation byte of UTF-8
    result += byte < 0x80 ? c : '?';
  }
  return result;
}

}  // namespace

int64_t text_width(const std::string& text, int64_t scale) {
  return static_cast<int64_t>(ascii(text).size()) * kAdvance * scale;
}

int64_t line_height(int64_t scale) { return kLine * scale; }

void draw_text(const std::string& text, int64_t left, int64_t top, int64_t scale, Image& image,
               const std::array<uint8_t, 3>& color) {
  for (const char character : ascii(text)) {
    const Glyph& glyph = glyph_of(character);
    for (int64_t x = 0; x < kGlyphWidth; ++x) {
      for (int64_t y = 0; y < kGlyphHeight; ++y) {
        if ((glyph[static_cast<size_t>(x)] >> y & 1) == 0) continue;
        const int64_t from = left + x * scale, above = top + y * scale;
        fill_rectangle({from, above, from + scale, above + scale}, color, image);
      }
    }
    left += kAdvance * scale;
  }
}

}  // namespace vitrail::image
