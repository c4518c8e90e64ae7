// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/encode.h"

#include "tests/image/support.h"
#include "vitrail/base/error.h"
#include "vitrail/image/decode.h"

namespace vitrail::image {
namespace {

Image counting(int64_t width, int64_t height, int64_t channels) {
  Image image = make_image(width, height, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * 7);
  return image;
}

TEST(EncodePng, RoundTrip) {
  for (const int64_t channels : {1, 3}) {
    const Image image = counting(31, 17, channels);
    const std::filesystem::path path = testing::scratch_folder() / "image.png";
    write_png(path, image);
    DecodeOptions options;
    options.mode = channels == 1 ? ColorMode::grey : ColorMode::rgb;
    EXPECT_TRUE(same_pixels(read_image(path, options), image));
  }
}

TEST(EncodePng, FailuresAreErrorsAndLeaveNoFile) {
  EXPECT_THROW(encode_png(Image{}), Error);
  EXPECT_THROW(encode_png(Image{4, 4, 3, std::vector<uint8_t>(5)}), Error);
  const std::filesystem::path folder = testing::scratch_folder();
  EXPECT_THROW(write_png(folder / "absent" / "image.png", counting(2, 2, 3)), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace vitrail::image
