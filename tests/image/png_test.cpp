// SPDX-License-Identifier: Apache-2.0
// PNG files made by hand: grey of 16 bits, and palettes.
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using namespace std::string_literals;
using Pixels = std::vector<uint8_t>;

std::string big_endian(uint64_t value) {
  std::string text;
  for (int i = 3; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string checked_chunk(const std::string& name, const std::string& data) {
  const std::string whole = name + data;
  return big_endian(data.size()) + whole +
         big_endian(crc32(0, reinterpret_cast<const Bytef*>(whole.data()), static_cast<uInt>(whole.size())));
}

// One row of samples without a filter.
std::string png(uint32_t width, int bits, int color_type, const std::string& palette, const std::string& row) {
  const std::string content = '\0' + row;
  std::string packed(200, '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(content.data()),
           static_cast<uLong>(content.size()));
  packed.resize(size);
  const std::string header =
      big_endian(width) + big_endian(1) + static_cast<char>(bits) + static_cast<char>(color_type) + "\0\0\0"s;
  return "\x89PNG\r\n\x1a\n" + checked_chunk("IHDR", header) + (palette.empty() ? "" : checked_chunk("PLTE", palette)) +
         checked_chunk("IDAT", packed) + checked_chunk("IEND", "");
}

Pixels png_pixels(const std::string& file, ColorMode mode = ColorMode::grey) {
  return decode(std::as_bytes(std::span(file)), {.mode = mode}, "test").pixels;
}

// Pillow clamps grey of 16 bits, and takes the high byte of colours and of grey with alpha.
TEST(Png, GreyOf16BitsIsClampedAndColoursAreShifted) {
  EXPECT_EQ(png_pixels(png(6, 16, 0, "", "\0\0\0\x07\0\xff\1\0\1\x10\xff\xff"s)), (Pixels{0, 7, 255, 255, 255, 255}));
  EXPECT_EQ(png_pixels(png(2, 16, 4, "", "\1\xff\0\0\x80\0\xff\xff"s)), (Pixels{1, 128})) << "with alpha";
  EXPECT_EQ(png_pixels(png(1, 16, 2, "", "\1\xff\x80\0\xff\xff"s), ColorMode::rgb), (Pixels{1, 128, 255}));
}

TEST(Png, IndicesTakeTheirColoursAndOthersAreBlack) {
  const std::string palette = "\x0a\x14\x1e\x28\x32\x3c\x46\x50\x5a";
  EXPECT_EQ(png_pixels(png(4, 2, 3, palette, "\x18"), ColorMode::rgb),  // 0, 1, 2, 0
            (Pixels{10, 20, 30, 40, 50, 60, 70, 80, 90, 10, 20, 30}));
  EXPECT_EQ(png_pixels(png(2, 8, 3, palette, "\x02\x01"), ColorMode::rgb), (Pixels{70, 80, 90, 40, 50, 60}));
  EXPECT_EQ(png_pixels(png(3, 1, 3, palette, "\x40"), ColorMode::rgb), (Pixels{10, 20, 30, 40, 50, 60, 10, 20, 30}));
}

TEST(Png, GreyOfFewBitsIsScaledToAByte) {
  EXPECT_EQ(png_pixels(png(4, 2, 0, "", "\x1b")), (Pixels{0, 85, 170, 255}));
  EXPECT_EQ(png_pixels(png(2, 4, 0, "", "\x1f")), (Pixels{17, 255}));
  EXPECT_EQ(png_pixels(png(3, 1, 0, "", "\xa0")), (Pixels{255, 0, 255}));
  EXPECT_EQ(png_pixels(png(2, 8, 4, "", "\x09\0\x11\xff"s)), (Pixels{9, 17})) << "alpha is dropped";
}

}  // namespace
}  // namespace vitrail::image
