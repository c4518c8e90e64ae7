// SPDX-License-Identifier: Apache-2.0
// BMP files that the reference's writer does not make.  Decode.EqualsPillow has the others.
#include <gtest/gtest.h>

#include <string>

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

Pixels pixels_of(const Bmp& bmp) {
  const std::vector<uint8_t> file = bmp.file();
  return decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey}, "test").pixels;
}
std::string refusal(const Bmp& bmp) {
  return testing::error_of([&] { pixels_of(bmp); });
}
const std::vector<uint8_t> kGreys{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150};
Bmp runs_of(int32_t width, int32_t height, const Bytes8& data, int bits = 8) {
  return {width, height, bits, bits == 8 ? 1U : 2U, kGreys, data};
}

TEST(Bmp, RowsAreFromTheBottomUnlessTheHeightIsNegative) {
  const Bytes8 rows{1, 2, 3, 0, 4, 5, 6, 0};  // padded to four bytes
  EXPECT_EQ(pixels_of({3, 2, 8, 0, kGreys, rows}), (Pixels{40, 50, 60, 10, 20, 30}));
  EXPECT_EQ(pixels_of({3, -2, 8, 0, kGreys, rows}), (Pixels{10, 20, 30, 40, 50, 60}));
  const Bytes8 runs{3, 1, 0, 0, 3, 2, 0, 1};
  EXPECT_EQ(pixels_of(runs_of(3, 2, runs)), (Pixels{20, 20, 20, 10, 10, 10}));
  EXPECT_EQ(pixels_of(runs_of(3, -2, runs)), (Pixels{10, 10, 10, 20, 20, 20}));
}

TEST(Bmp, ThePaddingOfTheLastRowMayLack) {
  EXPECT_EQ(pixels_of({3, 2, 8, 0, kGreys, {1, 2, 3, 0, 4, 5, 6}}), (Pixels{40, 50, 60, 10, 20, 30}));
  EXPECT_TRUE(testing::contains(refusal({3, 2, 8, 0, kGreys, {1, 2, 3, 0, 4, 5}}), "the end of the file"));
  EXPECT_EQ(pixels_of({3, -1, 4, 0, kGreys, {0x12, 0x30}}), (Pixels{10, 20, 30}));
  EXPECT_EQ(pixels_of({9, -1, 1, 0, {0, 255}, {0x80, 0x80}}), (Pixels{255, 0, 0, 0, 0, 0, 0, 0, 255}));
}

// Pillow reads such a file as a grey image, whose other indices are greys too.
TEST(Bmp, APaletteThatBeginsAGreyRampIsAllOfIt) {
  EXPECT_EQ(pixels_of({4, -1, 8, 0, {0, 1, 2}, {0, 2, 3, 200}}), (Pixels{0, 2, 3, 200}));
  EXPECT_EQ(pixels_of({4, -1, 8, 0, {0, 1, 3}, {0, 2, 3, 200}}), (Pixels{0, 3, 0, 0}))
      << "black beyond another palette";
}

TEST(Bmp, ARunEndsWithItsRow) {
  EXPECT_EQ(pixels_of(runs_of(3, -2, {5, 1, 0, 0, 2, 2, 0, 1})), (Pixels{10, 10, 10, 20, 20, 0}));
  EXPECT_EQ(pixels_of(runs_of(2, -1, {1, 1, 200, 2, 0, 1})), (Pixels{10, 20}));
}

TEST(Bmp, MovesLeaveOutPixels) {
  // One pixel, a move by one to the right and one up, and two pixels.
  EXPECT_EQ(pixels_of(runs_of(4, -3, {1, 1, 0, 2, 1, 1, 2, 3, 0, 1})), (Pixels{10, 0, 0, 0, 0, 0, 30, 30, 0, 0, 0, 0}));
  EXPECT_EQ(pixels_of(runs_of(2, -2, {0, 0, 2, 5, 0, 1})), (Pixels{50, 50, 0, 0}))
      << "the end of a row that has not begun stays there";
  EXPECT_EQ(pixels_of(runs_of(2, -2, {1, 5, 0, 2, 0, 200, 0, 1})), (Pixels{50, 0, 0, 0})) << "beyond the image";
}

TEST(Bmp, LiteralsAreWords) {
  EXPECT_EQ(pixels_of(runs_of(4, -1, {0, 3, 1, 2, 3, 0, 1, 4, 0, 1})), (Pixels{10, 20, 30, 40}));
  EXPECT_EQ(pixels_of(runs_of(4, -1, {0, 4, 1, 2, 3, 4})), (Pixels{10, 20, 30, 40})) << "no end of the image";
  EXPECT_EQ(pixels_of(runs_of(5, -1, {0, 5, 0x12, 0x34, 0x50, 0, 0, 1}, 4)), (Pixels{10, 20, 30, 40, 50}));
  EXPECT_EQ(pixels_of(runs_of(5, -1, {5, 0x12, 0, 1}, 4)), (Pixels{10, 20, 10, 20, 10}));
  EXPECT_TRUE(testing::contains(refusal(runs_of(4, -1, {0, 4, 1, 2})), "the end of the file"));
  EXPECT_TRUE(testing::contains(refusal(runs_of(4, -1, {2, 1})), "the end of the file"));
}

TEST(Bmp, ChannelsHaveTheScaleOf8Bits) {
  // Without masks, 16 bits are five for each channel.
  for (int value = 0; value < 32; ++value) {
    const auto low = static_cast<uint8_t>(value << 5 | value), high = static_cast<uint8_t>(value << 2 | value >> 3);
    EXPECT_EQ(pixels_of({1, 1, 16, 0, {}, {low, high, 0, 0}}), (Pixels{static_cast<uint8_t>(value * 255 / 31)}))
        << value;
  }
}

TEST(Bmp, OtherKindsAreErrors) {
  for (const auto& [bits, compression] : {std::pair{2, 0U}, {8, 2U}, {4, 1U}, {8, 3U}, {24, 4U}, {24, 1U}, {0, 0U}}) {
    const std::string message = refusal({1, 1, bits, compression, kGreys, {0, 0, 0, 0}});
    EXPECT_TRUE(testing::contains(message, "a BMP image of 1, 4, 8, 16, 24 or 32 bits")) << bits << message;
  }
  EXPECT_TRUE(testing::contains(refusal({0, 1, 8, 0, kGreys, {0}}), "an image with pixels"));
  std::vector<uint8_t> file = Bmp{1, 1, 8, 0, kGreys, {1, 0, 0, 0}}.file();
  file[14] = 41;
  EXPECT_TRUE(testing::contains(testing::error_of([&] { decode(std::as_bytes(std::span(file)), {}, "test"); }),
                                "an unknown header of 41 bytes"));
}

}  // namespace
}  // namespace vitrail::image
