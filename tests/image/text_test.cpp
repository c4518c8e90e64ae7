// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/text.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <set>

#include "vitrail/image/font_internal.h"

namespace vitrail::image {
namespace {

// The text as rows of '#' and '.'.
std::vector<std::string> rows_of(const std::string& text, int64_t scale) {
  Image image = make_image(text_width(text, scale), line_height(scale), 3);
  draw_text(text, 0, 0, scale, image, {255, 255, 255});
  std::vector<std::string> rows;
  for (int64_t y = 0; y < image.height; ++y) {
    std::string& row = rows.emplace_back();
    for (int64_t x = 0; x < image.width; ++x) row += image.row(y)[3 * x] ? '#' : '.';
  }
  return rows;
}

TEST(Text, IsReadable) {
  const std::vector<std::string> rows = rows_of("Lp", 1);
  EXPECT_EQ(rows[0], "#...........");
  EXPECT_EQ(rows[2], "#.....####..");
  EXPECT_EQ(rows[6], "#####.#.....");
  EXPECT_EQ(rows[7], "......#.....");
}

TEST(Text, ADotHasTheSizeOfTheScale) {
  const std::vector<std::string> once = rows_of("A9", 1), thrice = rows_of("A9", 3);
  ASSERT_EQ(thrice.size(), 3 * once.size());
  for (size_t y = 0; y < thrice.size(); ++y) {
    for (size_t x = 0; x < thrice[y].size(); ++x) ASSERT_EQ(thrice[y][x], once[y / 3][x / 3]) << x << " " << y;
  }
}

TEST(Text, ACharacterOutsideAsciiIsAQuestionMark) {
  EXPECT_EQ(text_width("\xc3\xa9\xe2\x86\x92", 2), text_width("??", 2));
  EXPECT_EQ(rows_of("\xc3\xa9", 1), rows_of("?", 1));
}

TEST(Text, EachPrintableCharacterOfAsciiHasItsOwnGlyph) {
  std::set<std::vector<std::string>> glyphs;
  for (char c = ' '; c <= '~'; ++c) EXPECT_TRUE(glyphs.insert(rows_of({c}, 1)).second) << c;
  for (const char other : {'\x1f', '\n', '\x7f'}) EXPECT_EQ(rows_of({other}, 1), rows_of("?", 1)) << int{other};
}

TEST(Text, IsCutOffAtTheEdgesOfTheImage) {
  Image image = make_image(4, 4, 3);
  draw_text("M", -2, -2, 2, image, {9, 9, 9});
  EXPECT_GT(std::count(image.pixels.begin(), image.pixels.end(), 9), 0);
}

// A drawing that leaves the image is the part of a larger one.
TEST(DrawText, IsCutOffAtEachSide) {
  const std::array<uint8_t, 3> color{10, 20, 30};
  for (const int64_t scale : {1, 3}) {
    Image large = make_image(90, 90, 3);
    draw_text("Wq?", 30, 30, scale, large, color);
    for (int64_t top = -36; top <= 18; top += 3) {
      for (int64_t left = -60; left <= 18; left += 2) {
        Image small = make_image(15, 15, 3);
        draw_text("Wq?", left, top, scale, small, color);
        for (int64_t y = 0; y < 15; ++y) {
          for (int64_t x = 0; x < 15; ++x) {
            const int64_t u = x - left + 30, v = y - top + 30;
            const bool inside = u >= 0 && u < 90 && v >= 0 && v < 90;
            for (int64_t c = 0; c < 3; ++c) {
              ASSERT_EQ(small.row(y)[3 * x + c], inside ? large.row(v)[3 * u + c] : 0)
                  << scale << ": " << left << " " << top << " " << x << " " << y;
            }
          }
        }
      }
    }
  }
}

TEST(Text, HasTheSizeOfItsCharactersAndALineOfSpaceAround) {
  EXPECT_EQ(text_width("abc", 1), 18);
  EXPECT_EQ(text_width("abc", 4), 72);
  EXPECT_EQ(text_width("", 3), 0);
  EXPECT_EQ(line_height(1), 10);
  EXPECT_EQ(line_height(3), 30);
}

TEST(Text, EveryByteThatBeginsACharacterIsOne) {
  for (const auto& [text, characters] : {std::pair<std::string, int64_t>{"\x7f", 1},
                                         {"a\x80", 1},
                                         {"a\xbf\xbf", 1},
                                         {"a\xc0", 2},
                                         {"\xff", 1},
                                         {"\xf0\x9f\x98\x80z", 2}}) {
    EXPECT_EQ(text_width(text, 1), 6 * characters) << characters;
  }
}

TEST(Text, IsBlackByDefault) {
  Image image = make_image(6, 8, 3);
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{77});
  draw_text("|", 0, 0, 1, image);  // the third column, from the top to the baseline
  for (int64_t y = 0; y < 8; ++y) {
    for (int64_t x = 0; x < 6; ++x) EXPECT_EQ(image.row(y)[3 * x + 1], x == 2 && y < 7 ? 0 : 77) << x << " " << y;
  }
}

// The dots of all glyphs in a sum: no dot changes without notice.
TEST(Font, HasTheDotsThatWereDrawn) {
  std::vector<uint8_t> columns;
  for (char c = ' '; c <= '~'; ++c) columns.insert(columns.end(), glyph_of(c).begin(), glyph_of(c).end());
  ASSERT_EQ(columns.size(), 95u * 5u);
  EXPECT_EQ(crc32(0, columns.data(), static_cast<uInt>(columns.size())), 2001723461u);
  EXPECT_EQ(glyph_of('E'), (Glyph{0x7f, 0x49, 0x49, 0x49, 0x41}));
  EXPECT_EQ(glyph_of('~'), (Glyph{0x08, 0x04, 0x08, 0x10, 0x08}));
  for (const char other : {'\x1f', '\x7f', '\0', '\xe9'}) EXPECT_EQ(&glyph_of(other), &glyph_of('?')) << int{other};
}

}  // namespace
}  // namespace vitrail::image
