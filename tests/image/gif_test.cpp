// SPDX-License-Identifier: Apache-2.0
// GIF files made by hand: the place of the frame, what is around it, palettes and damaged files.
#include <gtest/gtest.h>

#include <string>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

using namespace std::string_literals;
using Pixels = std::vector<uint8_t>;

std::string number(int value) { return {static_cast<char>(value & 255), static_cast<char>(value >> 8)}; }

// Codes of LZW with 3 bits each for indices of 2 bits: every third code clears the table, so that codes stay short.
std::string lzw(const std::string& indices) {
  std::string codes;
  unsigned bits = 0, count = 0;
  const auto put = [&](unsigned code) {
    bits |= code << count;
    for (count += 3; count >= 8; count -= 8, bits >>= 8) codes += static_cast<char>(bits & 255);
  };
  for (const char index : indices) put(4), put(static_cast<unsigned>(index - '0'));
  put(5);
  codes += static_cast<char>(bits);
  return "\x02"s + static_cast<char>(codes.size()) + codes + '\0';
}

struct Gif {
  int canvas_width = 3, canvas_height = 2, left = 0, top = 0, width = 3, height = 2;
  std::string indices = "012301";  // that of the frame
  std::string control = "";        // a graphics control extension
  std::string local = "";          // a palette of the frame
  int flags = 0;                   // that of the frame
  std::string palette = "\x0a\x14\x1e\x32\x3c\x46\x64\x6e\x78\xc8\xd2\xdc";

  std::string header() const {
    return "GIF89a" + number(canvas_width) + number(canvas_height) + "\x81\0\0"s + palette + control;
  }
  std::string file() const {
    return header() + "," + number(left) + number(top) + number(width) + number(height) +
           static_cast<char>(flags | (local.empty() ? 0 : 0x81)) + local + lzw(indices) + ";";
  }
};

Image read_gif(const std::string& file) { return decode(std::as_bytes(std::span(file)), {}, "test"); }
std::string reds(const Gif& gif) {  // '0' to '3' for the colours of the palette
  const Image image = read_gif(gif.file());
  std::string text;
  for (size_t i = 0; i < image.pixels.size(); i += 3) {
    const int red = image.pixels[i];
    text += red == 10 ? '0' : red == 50 ? '1' : red == 100 ? '2' : red == 200 ? '3' : '?';
  }
  return text;
}
std::string control(int flags, int index) {
  return "!\xf9\x04"s + static_cast<char>(flags) + "\0\0"s + static_cast<char>(index) + '\0';
}

TEST(Gif, HasTheColoursOfItsPalette) {
  const Image image = read_gif(Gif().file());
  EXPECT_EQ(image.width, 3);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.pixels, (Pixels{10, 20, 30, 50, 60, 70, 100, 110, 120, 200, 210, 220, 10, 20, 30, 50, 60, 70}));
  EXPECT_EQ(reds({.local = "\x64\1\1\x0a\1\1\xc8\1\1\x32\1\1"}), "203120") << "that of the frame";
}

TEST(Gif, AFrameIsAtItsPlaceOnTheCanvas) {
  const Gif part{.canvas_width = 4, .canvas_height = 3, .left = 2, .top = 1, .width = 2, .height = 1, .indices = "12"};
  EXPECT_EQ(reds(part), "000000120000");
  Gif larger = part;
  larger.left = 3, larger.top = 3;
  EXPECT_EQ(reds(larger), "00000000000000000012") << "the canvas grows to 5 × 4";
  EXPECT_EQ(read_gif(larger.file()).width, 5);
  EXPECT_EQ(read_gif(larger.file()).height, 4);
}

TEST(Gif, AroundTheFrameIsTheTransparentColour) {
  Gif part{.canvas_width = 3, .canvas_height = 2, .left = 1, .top = 0, .width = 1, .height = 1, .indices = "1"};
  part.control = control(1, 3);
  EXPECT_EQ(reds(part), "313333");
  part.control = control(0, 3);
  EXPECT_EQ(reds(part), "010000") << "without the flag of transparency";
  part.control = control(1, 0);
  EXPECT_EQ(reds(part), "010000");
  part.control = "!\xfe\x04\x01\1\1\2\0"s;
  EXPECT_EQ(reds(part), "010000") << "a comment";
  part.control = control(1, 2) + control(1, 3);
  EXPECT_EQ(reds(part), "313333") << "the last one";
  part.control = "!\xf9\x03\x01\0\0\0"s;
  EXPECT_EQ(reds(part), "010000") << "a short one";
}

TEST(Gif, InterlacedRowsComeInFourPasses) {
  Gif gif{.canvas_width = 1, .canvas_height = 10, .width = 1, .height = 10, .indices = "0011222333"};
  gif.flags = 0x40;
  // Rows 0 and 8; 4; 2 and 6; 1, 3, 5, 7 and 9.
  EXPECT_EQ(reds(gif), "0212132303");
}

TEST(Gif, DamagedFilesAreErrors) {
  const auto refusal = [](const std::string& file) { return testing::error_of([&] { read_gif(file); }); };
  const std::string whole = Gif().file();
  EXPECT_ERROR(refusal(Gif().header() + ";"), "test", "a file without a frame");
  EXPECT_TRUE(refusal(Gif().header()).starts_with("test: expected a complete GIF image, got "));
  EXPECT_TRUE(refusal(whole.substr(0, 10)).starts_with("test: expected a complete GIF image, got "));
  EXPECT_TRUE(refusal(whole.substr(0, whole.size() - 8)).starts_with("test: expected a complete GIF image, got "));
  EXPECT_ERROR(refusal(Gif{.width = 0}.file()), "test", "0×2");
  EXPECT_ERROR(refusal(Gif{.height = 0}.file()), "test", "3×0");
  EXPECT_ERROR(testing::error_of([&] { decode(std::as_bytes(std::span(whole)), {.max_pixels = 5}, "x"); }), "x", "3×2");
}

// Pillow reads a palette that begins a grey ramp as all of it.
TEST(Gif, APaletteThatBeginsAGreyRampIsGrey) {
  Gif gif;
  gif.palette = "\0\0\0\1\1\1\2\2\2\3\3\3"s;
  const Image ramp = read_gif(gif.file());
  EXPECT_EQ(ramp.pixels[9], 3);
  gif.palette = "\0\0\0\1\1\1\2\2\2\3\4\3"s;
  EXPECT_EQ(read_gif(gif.file()).pixels[10], 4);
}

}  // namespace
}  // namespace vitrail::image
