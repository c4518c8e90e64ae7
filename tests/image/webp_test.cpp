// SPDX-License-Identifier: Apache-2.0
// The frame of an animated WebP on its canvas.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/image/support.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

// Writes 24 bits, little-endian, behind the header of a chunk.
void put(std::vector<uint8_t>& file, const std::string& chunk, size_t offset, uint32_t value) {
  const auto at = std::search(file.begin(), file.end(), chunk.begin(), chunk.end()) + 8 + static_cast<int64_t>(offset);
  for (int i = 0; i < 3; ++i) at[i] = static_cast<uint8_t>(value >> (8 * i));
}
// An animation of frames of 14 x 10 pixels, the first of them at (2 * left, 2 * top).
std::vector<uint8_t> animated(uint32_t width, uint32_t height, uint32_t left, uint32_t top) {
  std::vector<uint8_t> file = read_bytes(testing::fixture("image/decode/animated_lossless.webp"));
  put(file, "VP8X", 4, width - 1);
  put(file, "VP8X", 7, height - 1);
  put(file, "ANMF", 0, left);
  put(file, "ANMF", 3, top);
  return file;
}
Image read_webp(const std::vector<uint8_t>& file) { return decode(std::as_bytes(std::span(file)), {}, "test"); }

TEST(AnimatedWebp, TheFirstFrameIsAtItsPlaceOnABlackCanvas) {
  const Image frame = read_webp(animated(14, 10, 0, 0));
  const Image canvas = read_webp(animated(25, 19, 3, 2));
  ASSERT_EQ(canvas.width, 25);
  ASSERT_EQ(canvas.height, 19);
  for (int64_t y = 0; y < canvas.height; ++y) {
    for (int64_t x = 0; x < canvas.width; ++x) {
      const int64_t u = x - 6, v = y - 4;
      const bool inside = u >= 0 && u < frame.width && v >= 0 && v < frame.height;
      for (int64_t c = 0; c < 3; ++c) {
        ASSERT_EQ(canvas.row(y)[3 * x + c], inside ? frame.row(v)[3 * u + c] : 0) << x << " " << y;
      }
    }
  }
}

TEST(AnimatedWebp, AFrameThatLeavesItsCanvasIsAnError) {
  EXPECT_EQ(read_webp(animated(16, 14, 1, 2)).height, 14);
  const std::vector<uint8_t> files[] = {animated(15, 14, 1, 2), animated(16, 13, 1, 2), animated(16, 14, 2, 2),
                                        animated(16, 14, 1, 3), animated(13, 10, 0, 0), animated(14, 9, 0, 0)};
  for (const std::vector<uint8_t>& file : files) {
    EXPECT_TRUE(testing::contains(testing::error_of([&] { read_webp(file); }), "a frame outside its canvas"));
  }
}

TEST(AnimatedWebp, AFrameOfAnotherSizeThanItsChunkSaysIsAnError) {
  for (const size_t offset : {6, 9}) {
    std::vector<uint8_t> file = animated(40, 40, 0, 0);
    put(file, "ANMF", offset, 5);
    EXPECT_TRUE(testing::contains(testing::error_of([&] { read_webp(file); }), "a frame outside its canvas")) << offset;
  }
}

TEST(Webp, RefusalsSayWhatIsBroken) {
  const auto refusal = [](const std::vector<uint8_t>& file) { return testing::error_of([&] { read_webp(file); }); };
  const auto from_text = [](const std::string& text) { return std::vector<uint8_t>(text.begin(), text.end()); };
  const std::string begin = "test: expected a complete WebP image, got ";
  std::vector<uint8_t> file = read_bytes(testing::fixture("image/decode/lossless.webp"));
  EXPECT_EQ(refusal({file.begin(), file.begin() + 14}), begin + "the end of the file");
  EXPECT_EQ(refusal({file.begin(), file.begin() + 200}), begin + "truncated or broken data");
  EXPECT_TRUE(refusal(from_text("RIFF\x20\x01\x01\x01WEBPVP8L\x10\x01\x01\x01" + std::string(300, 'x')))
                  .starts_with(begin + "a broken header (libwebp's status "));
  std::vector<uint8_t> frameless = animated(14, 10, 0, 0);
  const std::string name = "ANMF";
  for (auto at = frameless.begin();;) {
    at = std::search(at, frameless.end(), name.begin(), name.end());
    if (at == frameless.end()) break;
    *at = 'B';
  }
  EXPECT_EQ(refusal(frameless), begin + "an animation without a frame");
}

}  // namespace
}  // namespace vitrail::image
