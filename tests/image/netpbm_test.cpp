// SPDX-License-Identifier: Apache-2.0
// PBM, PGM and PPM files, and the limit of pixels.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using namespace std::string_literals;
using Pixels = std::vector<uint8_t>;

Image read_netpbm(const std::string& file, ColorMode mode = ColorMode::grey) {
  return decode(std::as_bytes(std::span(file)), {.mode = mode}, "test");
}
std::string netpbm_refusal(const std::string& file) {
  return testing::error_of([&] { read_netpbm(file); });
}

TEST(Netpbm, NumbersAreBetweenSpacesAndComments) {
  for (const std::string& file :
       {"P2 2 1 255 7 9"s, "P2\n# a\n2# b\r1\t#c\n\n255\n#d\n7\r\n9#e"s, "P2#x\r2 1\v\f255 7 9 "s,
        "P5 2 1 255\n\x07\x09"s, "P5#a\n2#b\r1 255\r\x07\x09 more"s}) {
    const Image image = read_netpbm(file);
    EXPECT_EQ(image.width, 2) << file;
    EXPECT_EQ(image.height, 1) << file;
    EXPECT_EQ(image.pixels, (Pixels{7, 9})) << file;
  }
}

TEST(Netpbm, BitsAreBlackOrWhiteInRowsOfWholeBytes) {
  const Pixels want{0, 255, 255, 255, 0, 255, 255, 255, 255, 0, 255, 0};  // 1 is black
  EXPECT_EQ(read_netpbm("P1 6 2 1000 10 00 01 01").pixels, want);
  EXPECT_EQ(read_netpbm("P1 6 2 100010#x\n000101").pixels, want);
  EXPECT_EQ(read_netpbm("P4 6 2 \x88\x14"s).pixels, want);
  EXPECT_EQ(read_netpbm("P4 9 1 \x80\x80"s).pixels, (Pixels{0, 255, 255, 255, 255, 255, 255, 255, 0}));
  EXPECT_TRUE(testing::contains(netpbm_refusal("P1 2 1 1"), "the end of the file"));
  EXPECT_TRUE(testing::contains(netpbm_refusal("P1 2 1 12"), "no bit"));
  EXPECT_TRUE(testing::contains(netpbm_refusal("P4 9 1 \x80"), "the end of the file"));
}

// Pillow scales 8 bits to 255, with halves to even; grey of more bits to 65535, clamped at 255.
TEST(Netpbm, SamplesAreScaledFromTheirMaximum) {
  for (const int max : {1, 2, 3, 7, 10, 100, 254, 255, 256, 1000, 65535}) {
    for (const int value : {0, 1, max / 3, max / 2, max - 1, max}) {
      const double out = max > 255 ? 65535 : 255;
      const double want = std::min(255.0, std::nearbyint(static_cast<double>(value) / max * out));
      std::string binary = "P5 1 1 " + std::to_string(max) + "\n";
      if (max > 255) binary += static_cast<char>(value >> 8);
      binary += static_cast<char>(value);
      EXPECT_EQ(read_netpbm(binary).pixels[0], want) << value << " of " << max;
      EXPECT_EQ(read_netpbm("P2 1 1 " + std::to_string(max) + " " + std::to_string(value)).pixels[0], want);
      const double colour = std::nearbyint(static_cast<double>(value) / max * 255);
      const std::string text = " " + std::to_string(value);
      EXPECT_EQ(read_netpbm("P3 1 1 " + std::to_string(max) + text + " 0" + text, ColorMode::rgb).pixels[2], colour)
          << value << " of " << max;
    }
  }
}

TEST(Netpbm, ColoursAreThreeSamples) {
  EXPECT_EQ(read_netpbm("P6 2 1 255 abcdef", ColorMode::rgb).pixels, (Pixels{'a', 'b', 'c', 'd', 'e', 'f'}));
  EXPECT_EQ(read_netpbm("P3 1 2 9 9 0 0 0 9 9", ColorMode::rgb).pixels, (Pixels{255, 0, 0, 0, 255, 255}));
}

TEST(Netpbm, DamagedFilesAreErrors) {
  const std::pair<std::string, const char*> cases[] = {{"P5 2", "the end of the file"},
                                                       {"P5 x 1 255 ", "no number"},
                                                       {"P5 2 1 0 ab", "a maximum of 0"},
                                                       {"P5 2 1 65536 ab", "a maximum of 65536"},
                                                       {"P5 2147483648 1 255 a", "a larger number"},
                                                       {"P5 2 1 255 a", "the end of the file"},
                                                       {"P5 2 1 256 abc", "the end of the file"},
                                                       {"P2 2 1 9 1 10", "a sample of 10 above 9"},
                                                       {"P2 2 1 9 1", "the end of the file"},
                                                       {"P6 1 1 255 ab", "the end of the file"},
                                                       {"P5 0 1 255 ", "an image with pixels"},
                                                       {"P5 1 0 255 ", "an image with pixels"}};
  for (const auto& [file, part] : cases) EXPECT_TRUE(testing::contains(netpbm_refusal(file), part)) << file;
  for (const std::string& other : {"P0 1 1 1 a"s, "P7 1 1 1 a"s, "P51 1 1 a"s, "P5"s}) {
    EXPECT_FALSE(has_image_signature(std::as_bytes(std::span(other)))) << other;
  }
}

TEST(Decode, AnImageOfExactlyTheLimitIsRead) {
  const std::string file = "P5 3 4 255 abcdefghijkl";
  const auto size_with = [&](int64_t max_pixels) {
    return decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey, .max_pixels = max_pixels}, "test")
        .pixels.size();
  };
  EXPECT_EQ(size_with(12), 12u);
  EXPECT_EQ(size_with(13), 12u);
  EXPECT_TRUE(testing::contains(testing::error_of([&] { size_with(11); }), "at most 11 pixels, got 3×4"));
}

TEST(Netpbm, NumbersHave31Bits) {
  EXPECT_ERROR(netpbm_refusal("P5 2147483647 1 255 "), "test", "2147483647×1");
  EXPECT_ERROR(netpbm_refusal("P5 1 2147483647 255 "), "test", "1×2147483647");
  EXPECT_ERROR(netpbm_refusal("P5 2147483648 1 255 "), "test", "a larger number");
  EXPECT_ERROR(netpbm_refusal("P5 1 1 65536 a"), "test", "a maximum of 65536");
}

}  // namespace
}  // namespace vitrail::image
