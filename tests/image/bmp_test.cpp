// SPDX-License-Identifier: Apache-2.0
// BMP files that the reference's writer does not make.  Decode.EqualsPillow has the others.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using Pixels = std::vector<uint8_t>;
using Bytes8 = std::vector<uint8_t>;

struct Bmp {
  int32_t width = 0, height = 0;  // a negative height: from top to bottom
  int bits = 8;
  uint32_t compression = 0;
  std::vector<uint8_t> greys = {};  // the palette
  Bytes8 data = {};

  std::vector<uint8_t> file() const {
    std::vector<uint8_t> bytes(54);
    bytes[0] = 'B', bytes[1] = 'M';
    const auto put = [&](size_t at, uint32_t value) {
      for (size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
    };
    put(10, static_cast<uint32_t>(54 + 4 * greys.size()));
    put(14, 40);
    put(18, static_cast<uint32_t>(width));
    put(22, static_cast<uint32_t>(height));
    bytes[26] = 1, bytes[28] = static_cast<uint8_t>(bits);
    put(30, compression);
    put(46, static_cast<uint32_t>(greys.size()));
    for (const uint8_t grey : greys) bytes.insert(bytes.end(), {grey, grey, grey, 0});
    bytes.insert(bytes.end(), data.begin(), data.end());
    return bytes;
  }
};

Pixels bmp_pixels(const Bmp& bmp) {
  const std::vector<uint8_t> file = bmp.file();
  return decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey}, "test").pixels;
}
std::string bmp_refusal(const Bmp& bmp) {
  return testing::error_of([&] { bmp_pixels(bmp); });
}
const std::vector<uint8_t> kGreys{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150};
Bmp runs_of(int32_t width, int32_t height, const Bytes8& data, int bits = 8) {
  return {width, height, bits, bits == 8 ? 1U : 2U, kGreys, data};
}

TEST(Bmp, RowsAreFromTheBottomUnlessTheHeightIsNegative) {
  const Bytes8 rows{1, 2, 3, 0, 4, 5, 6, 0};  // padded to four bytes
  EXPECT_EQ(bmp_pixels({3, 2, 8, 0, kGreys, rows}), (Pixels{40, 50, 60, 10, 20, 30}));
  EXPECT_EQ(bmp_pixels({3, -2, 8, 0, kGreys, rows}), (Pixels{10, 20, 30, 40, 50, 60}));
  const Bytes8 runs{3, 1, 0, 0, 3, 2, 0, 1};
  EXPECT_EQ(bmp_pixels(runs_of(3, 2, runs)), (Pixels{20, 20, 20, 10, 10, 10}));
  EXPECT_EQ(bmp_pixels(runs_of(3, -2, runs)), (Pixels{10, 10, 10, 20, 20, 20}));
}

TEST(Bmp, ThePaddingOfTheLastRowMayLack) {
  EXPECT_EQ(bmp_pixels({3, 2, 8, 0, kGreys, {1, 2, 3, 0, 4, 5, 6}}), (Pixels{40, 50, 60, 10, 20, 30}));
  EXPECT_TRUE(testing::contains(bmp_refusal({3, 2, 8, 0, kGreys, {1, 2, 3, 0, 4, 5}}), "the end of the file"));
  EXPECT_EQ(bmp_pixels({3, -1, 4, 0, kGreys, {0x12, 0x30}}), (Pixels{10, 20, 30}));
  EXPECT_EQ(bmp_pixels({9, -1, 1, 0, {0, 255}, {0x80, 0x80}}), (Pixels{255, 0, 0, 0, 0, 0, 0, 0, 255}));
}

// Pillow reads such a file as a grey image, whose other indices are greys too.
TEST(Bmp, APaletteThatBeginsAGreyRampIsAllOfIt) {
  EXPECT_EQ(bmp_pixels({4, -1, 8, 0, {0, 1, 2}, {0, 2, 3, 200}}), (Pixels{0, 2, 3, 200}));
  EXPECT_EQ(bmp_pixels({4, -1, 8, 0, {0, 1, 3}, {0, 2, 3, 200}}), (Pixels{0, 3, 0, 0}))
      << "black beyond another palette";
}

TEST(Bmp, ARunEndsWithItsRow) {
  EXPECT_EQ(bmp_pixels(runs_of(3, -2, {5, 1, 0, 0, 2, 2, 0, 1})), (Pixels{10, 10, 10, 20, 20, 0}));
  EXPECT_EQ(bmp_pixels(runs_of(2, -1, {1, 1, 200, 2, 0, 1})), (Pixels{10, 20}));
}

TEST(Bmp, MovesLeaveOutPixels) {
  // One pixel, a move by one to the right and one up, and two pixels.
  EXPECT_EQ(bmp_pixels(runs_of(4, -3, {1, 1, 0, 2, 1, 1, 2, 3, 0, 1})),
            (Pixels{10, 0, 0, 0, 0, 0, 30, 30, 0, 0, 0, 0}));
  EXPECT_EQ(bmp_pixels(runs_of(2, -2, {0, 0, 2, 5, 0, 1})), (Pixels{50, 50, 0, 0}))
      << "the end of a row that has not begun stays there";
  EXPECT_EQ(bmp_pixels(runs_of(2, -2, {1, 5, 0, 2, 0, 200, 0, 1})), (Pixels{50, 0, 0, 0})) << "beyond the image";
}

TEST(Bmp, LiteralsAreWords) {
  EXPECT_EQ(bmp_pixels(runs_of(4, -1, {0, 3, 1, 2, 3, 0, 1, 4, 0, 1})), (Pixels{10, 20, 30, 40}));
  EXPECT_EQ(bmp_pixels(runs_of(4, -1, {0, 4, 1, 2, 3, 4})), (Pixels{10, 20, 30, 40})) << "no end of the image";
  EXPECT_EQ(bmp_pixels(runs_of(5, -1, {0, 5, 0x12, 0x34, 0x50, 0, 0, 1}, 4)), (Pixels{10, 20, 30, 40, 50}));
  EXPECT_EQ(bmp_pixels(runs_of(5, -1, {5, 0x12, 0, 1}, 4)), (Pixels{10, 20, 10, 20, 10}));
  EXPECT_TRUE(testing::contains(bmp_refusal(runs_of(4, -1, {0, 4, 1, 2})), "the end of the file"));
  EXPECT_TRUE(testing::contains(bmp_refusal(runs_of(4, -1, {2, 1})), "the end of the file"));
}

TEST(Bmp, ChannelsHaveTheScaleOf8Bits) {
  // Without masks, 16 bits are five for each channel.
  for (int value = 0; value < 32; ++value) {
    const auto low = static_cast<uint8_t>(value << 5 | value), high = static_cast<uint8_t>(value << 2 | value >> 3);
    EXPECT_EQ(bmp_pixels({1, 1, 16, 0, {}, {low, high, 0, 0}}), (Pixels{static_cast<uint8_t>(value * 255 / 31)}))
        << value;
  }
}

TEST(Bmp, OtherKindsAreErrors) {
  for (const auto& [bits, compression] : {std::pair{2, 0U}, {8, 2U}, {4, 1U}, {8, 3U}, {24, 4U}, {24, 1U}, {0, 0U}}) {
    const std::string message = bmp_refusal({1, 1, bits, compression, kGreys, {0, 0, 0, 0}});
    EXPECT_TRUE(testing::contains(message, "a BMP image of 1, 4, 8, 16, 24 or 32 bits")) << bits << message;
  }
  EXPECT_TRUE(testing::contains(bmp_refusal({0, 1, 8, 0, kGreys, {0}}), "an image with pixels"));
  std::vector<uint8_t> file = Bmp{1, 1, 8, 0, kGreys, {1, 0, 0, 0}}.file();
  file[14] = 41;
  EXPECT_TRUE(testing::contains(testing::error_of([&] { decode(std::as_bytes(std::span(file)), {}, "test"); }),
                                "an unknown header of 41 bytes"));
}

// Writes a little-endian number into a file.
void put(std::vector<uint8_t>& file, size_t at, uint32_t value, size_t bytes = 4) {
  for (size_t i = 0; i < bytes; ++i) file[at + i] = static_cast<uint8_t>(value >> (8 * i));
}
Pixels colours_of(const std::vector<uint8_t>& file) {
  return decode(std::as_bytes(std::span(file)), {}, "test").pixels;
}
std::string refusal_of(const std::vector<uint8_t>& file) {
  return testing::error_of([&] { colours_of(file); });
}

TEST(Bmp, DataThatWouldBeginInThePaletteBeginBehindIt) {
  std::vector<uint8_t> file = Bmp{3, -1, 8, 0, {50, 60, 70}, {2, 0, 1, 0}}.file();
  put(file, 10, 54);
  EXPECT_EQ(colours_of(file), (Pixels{70, 70, 70, 50, 50, 50, 60, 60, 60}));
  put(file, 10, 50);
  EXPECT_EQ(colours_of(file), Pixels(9, 50)) << "data in front of the palette, which are zeros of the header";
  put(file, 10, 55);
  EXPECT_NE(colours_of(file), (Pixels{70, 70, 70, 50, 50, 50, 60, 60, 60})) << "another place is taken as it is";
}

TEST(Bmp, APaletteHasBlueFirstAndAtMostSixteenBits) {
  std::vector<uint8_t> file = Bmp{2, -1, 8, 0, {0, 0}, {1, 0, 0, 0}}.file();
  file[54 + 4] = 30, file[54 + 5] = 20, file[54 + 6] = 10;
  EXPECT_EQ(colours_of(file), (Pixels{10, 20, 30, 0, 0, 0}));
  put(file, 46, 65537);
  EXPECT_ERROR(refusal_of(file), "test", "65537");
  put(file, 46, 65536);
  EXPECT_ERROR(refusal_of(file), "test", "the end of the file");
  std::vector<uint8_t> whole = Bmp{1, -1, 4, 0, std::vector<uint8_t>(16, 9), {0xF0, 0, 0, 0}}.file();
  put(whole, 46, 0);  // as many as the bits can name
  EXPECT_EQ(colours_of(whole), (Pixels{9, 9, 9}));
}

// Masks say where each channel is, and zeros stand for the usual places.
TEST(Bmp, MasksSelectTheBitsOfAChannel) {
  const auto masked = [](uint32_t red, uint32_t green, uint32_t blue, const Bytes8& data, int bits) {
    std::vector<uint8_t> file = Bmp{1, 1, bits, 3, {}, {}}.file();
    file.resize(66);
    put(file, 10, 66);
    put(file, 54, red), put(file, 58, green), put(file, 62, blue);
    file.insert(file.end(), data.begin(), data.end());
    return colours_of(file);
  };
  EXPECT_EQ(masked(0xff, 0xff00, 0xff0000, {10, 20, 30, 40}, 32), (Pixels{10, 20, 30}));
  EXPECT_EQ(masked(0xff000000, 0, 0xff, {10, 20, 30, 40}, 32), (Pixels{40, 0, 10})) << "no bits of green";
  EXPECT_EQ(masked(0, 0, 0, {10, 20, 30, 40}, 32), (Pixels{30, 20, 10}));
  EXPECT_EQ(masked(0xf800, 0x7e0, 0x1f, {0x1f, 0xf8, 0, 0}, 16), (Pixels{255, 0, 255}));
  EXPECT_EQ(masked(0xf000, 0x0f00, 0x00f0, {0x50, 0x8f, 0, 0}, 16), (Pixels{136, 255, 85}));
  EXPECT_EQ(masked(0, 0, 0, {0xe0, 0x03, 0, 0}, 16), (Pixels{0, 255, 0}));
}

TEST(Bmp, PixelsOf24BitsArePaddedToFourBytes) {
  const Bytes8 data{1, 2, 3, 4, 5, 6, 0, 0, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(colours_of(Bmp{2, 2, 24, 0, {}, data}.file()), (Pixels{9, 8, 7, 12, 11, 10, 3, 2, 1, 6, 5, 4}));
  EXPECT_ERROR(refusal_of(Bmp{2, 2, 24, 0, {}, {data.begin(), data.end() - 1}}.file()), "test", "the end of the file");
}

TEST(Bmp, RefusalsNameBitsCompressionAndHeader) {
  EXPECT_ERROR(bmp_refusal({2, 1, 2, 0, kGreys, {0, 0, 0, 0}}), "test", "2 bits with compression 0");
  EXPECT_ERROR(bmp_refusal({2, 1, 1, 1, kGreys, {0, 0, 0, 0}}), "test", "1 bits with compression 1");
  std::vector<uint8_t> file = Bmp{1, 1, 8, 0, kGreys, {1, 0, 0, 0}}.file();
  for (const uint32_t size : {0, 11, 13, 16, 39, 41, 53, 109, 125}) {
    put(file, 14, size);
    EXPECT_ERROR(refusal_of(file), "test", "one with an unknown header of " + std::to_string(size) + " bytes");
  }
  EXPECT_ERROR(refusal_of(std::vector<uint8_t>(file.begin(), file.begin() + 17)), "test", "the end of the file");
}

// Literals and runs of 4 bits have their first pixel in the high half, and moves count rows upwards.
TEST(Bmp, RunsOfFourBitsMoveAndEndAsThoseOfEight) {
  EXPECT_EQ(bmp_pixels(runs_of(4, -2, {3, 0x12, 0, 0, 0, 3, 0x34, 0x50, 0, 1}, 4)),
            (Pixels{10, 20, 10, 0, 30, 40, 50, 0}));
  EXPECT_EQ(bmp_pixels(runs_of(4, -3, {1, 0x10, 0, 2, 2, 1, 1, 0x90, 0, 1}, 4)),
            (Pixels{10, 0, 0, 0, 0, 0, 0, 90, 0, 0, 0, 0}));
  EXPECT_EQ(bmp_pixels(runs_of(3, 2, {3, 0x11, 0, 0, 3, 0x22}, 4)), (Pixels{20, 20, 20, 10, 10, 10}));
  EXPECT_EQ(bmp_pixels(runs_of(3, -1, {0, 3, 1, 2, 3})), (Pixels{10, 20, 30})) << "the padding at the end may lack";
}

}  // namespace
}  // namespace vitrail::image
