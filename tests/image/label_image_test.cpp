// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/label_image.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"
#include "vitrail/image/encode.h"

namespace vitrail::image {
namespace {

using testing::error_of;

LabelImage fixture_labels(const std::string& name) { return read_labels(testing::fixture("image/decode/" + name)); }

int32_t largest(const std::string& name) { return std::ranges::max(fixture_labels(name).labels); }

// The pixels of these files take all values of their bits.
TEST(LabelImage, HasTheNumbersOfThePixels) {
  EXPECT_EQ(fixture_labels("grey_8.png").width, 29);
  EXPECT_EQ(fixture_labels("grey_8.png").height, 19);
  EXPECT_EQ(largest("grey_1.png"), 1);
  EXPECT_EQ(largest("grey_2.png"), 3);
  EXPECT_EQ(largest("grey_4.png"), 15);
  for (const char* bits : {"1", "2", "4"}) {
    const std::string name = std::string("palette_") + bits + ".png";
    EXPECT_LT(largest(name), 1 << (bits[0] - '0')) << "the index, not the colour";
    EXPECT_EQ(fixture_labels(name).labels, fixture_labels(std::string("palette_") + bits + "_interlaced.png").labels);
  }
  const Image grey = read_image(testing::fixture("image/decode/grey_8.png"), {.mode = ColorMode::grey});
  EXPECT_TRUE(std::ranges::equal(fixture_labels("grey_8.png").labels, grey.pixels));
}

TEST(LabelImage, Has16Bits) {
  const std::vector<uint8_t> file = encode_png(Gray16{3, 1, {0, 258, 65535}});
  EXPECT_EQ(decode_labels(std::as_bytes(std::span(file)), "file").labels, (std::vector<int32_t>{0, 258, 65535}));
}

TEST(LabelImage, RefusesColours) {
  EXPECT_ERROR(error_of([] { fixture_labels("rgb_8.png"); }), testing::fixture("image/decode/rgb_8.png").string(),
               "colours without a palette");
  const std::string text = "a text, which is longer than a signature";
  const std::string message = error_of([&] { decode_labels(std::as_bytes(std::span(text)), "labels.txt"); });
  EXPECT_TRUE(message.starts_with("labels.txt: expected a PNG of class indices")) << message;
}

}  // namespace
}  // namespace vitrail::image
