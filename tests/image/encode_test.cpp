// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/encode.h"

#include "tests/image/support.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/gzip_internal.h"
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

// The header of PNG: width, height, 8 bits, the kind of colours, deflate, filters, no interlacing.
TEST(EncodePng, WritesEightBitsOfGreyOrColour) {
  for (const int64_t channels : {1, 3}) {
    const std::vector<uint8_t> file = encode_png(counting(300, 2, channels));
    ASSERT_GT(file.size(), 29u);
    EXPECT_EQ(std::string(file.begin() + 1, file.begin() + 4), "PNG");
    const std::vector<uint8_t> header(file.begin() + 16, file.begin() + 29),
        want{0, 0, 1, 44, 0, 0, 0, 2, 8, static_cast<uint8_t>(channels == 3 ? 2 : 0), 0, 0, 0};
    EXPECT_EQ(header, want) << channels;
    EXPECT_EQ(std::string(file.end() - 8, file.end() - 4), "IEND");
  }
}

// The decoder clamps 16-bit grey at 255, as Pillow.
TEST(EncodePng, WritesSixteenBitsOfGrey) {
  const std::vector<uint8_t> file = encode_png(Gray16{3, 2, {0, 1, 254, 255, 256, 65535}});
  const std::vector<uint8_t> header(file.begin() + 16, file.begin() + 29), want{0, 0, 0, 3, 0, 0, 0, 2, 16, 0, 0, 0, 0};
  EXPECT_EQ(header, want);
  const Image clamped = decode(std::as_bytes(std::span(file)), {.mode = ColorMode::grey}, "file");
  EXPECT_EQ(clamped.pixels, (std::vector<uint8_t>{0, 1, 254, 255, 255, 255}));
  EXPECT_ERROR(testing::error_of([] { encode_png(Gray16{4, 4, std::vector<uint16_t>(5)}); }), "encode_png", "5");
}

// The filtered bytes of a single pixel are its values, whatever the filter.
TEST(EncodePng, WritesColourAndAlpha) {
  for (const int64_t channels : {1, 3}) {
    Image image = make_image(1, 1, channels);
    image.pixels = channels == 3 ? std::vector<uint8_t>{10, 20, 30} : std::vector<uint8_t>{10};
    const std::vector<uint8_t> file = encode_png(image, Image{1, 1, 1, {200}});
    EXPECT_EQ(file[25], 6) << "RGBA";
    const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
    const auto data = std::as_bytes(std::span(text.substr(text.find("IDAT") + 4)));
    const std::vector<std::byte> row = inflate_all(data.first(data.size() - 16), 100, "IDAT");
    ASSERT_EQ(row.size(), 5u);
    const std::vector<std::byte> pixel(row.begin() + 1, row.end()),
        want = channels == 3 ? std::vector{std::byte{10}, std::byte{20}, std::byte{30}, std::byte{200}}
                             : std::vector{std::byte{10}, std::byte{10}, std::byte{10}, std::byte{200}};
    EXPECT_EQ(pixel, want);
  }
  const Image image = counting(31, 17, 3);
  const std::vector<uint8_t> file = encode_png(image, counting(31, 17, 1));
  EXPECT_TRUE(same_pixels(decode(std::as_bytes(std::span(file)), {}, "file"), image));
  EXPECT_ERROR(testing::error_of([&] { encode_png(image, counting(31, 16, 1)); }), "encode_png", "31×16 of 1 channels");
}

TEST(EncodePng, RefusalsNameTheFunctionOrThePath) {
  EXPECT_ERROR(testing::error_of([] { encode_png(Image{4, 4, 3, std::vector<uint8_t>(5)}); }), "encode_png", "5");
  EXPECT_ERROR(testing::error_of([] {
                 encode_png(Image{4, 4, 2, std::vector<uint8_t>(32)});
               }),
               "encode_png", "4×4 with 2 channels");
  const std::filesystem::path folder = testing::scratch_folder();
  EXPECT_TRUE(
      testing::contains(testing::error_of([&] { write_png(folder / "gone" / "x.png", counting(2, 2, 3)); }), "gone"));
  write_png(folder / "a.png", counting(3, 2, 1));
  write_png(folder / "a.png", counting(5, 4, 3));  // instead of the file
  EXPECT_EQ(read_image(folder / "a.png").width, 5);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()), 1)
      << "nothing is left beside it";
}

// A gradient differs by the rounding of its coefficients alone.
TEST(EncodeJpeg, KeepsSmoothImagesAndIsSmall) {
  for (const int64_t channels : {1, 3}) {
    Image image = make_image(90, 61, channels);
    for (int64_t y = 0; y < image.height; ++y) {
      for (int64_t i = 0; i < image.row_bytes(); ++i) image.row(y)[i] = static_cast<uint8_t>(i / channels + 2 * y);
    }
    const std::vector<uint8_t> file = encode_jpeg(image, 95);
    DecodeOptions options;
    options.mode = channels == 1 ? ColorMode::grey : ColorMode::rgb;
    const Image read = decode(std::as_bytes(std::span(file)), options, "file");
    ASSERT_EQ(read.pixels.size(), image.pixels.size());
    int largest = 0;
    for (size_t i = 0; i < read.pixels.size(); ++i)
      largest = std::max(largest, std::abs(read.pixels[i] - image.pixels[i]));
    EXPECT_LE(largest, 4) << channels;
    EXPECT_LT(file.size(), image.pixels.size() / 2);
    EXPECT_LT(encode_jpeg(counting(64, 64, channels), 10).size(), encode_jpeg(counting(64, 64, channels), 90).size());
  }
}

TEST(EncodeJpeg, RefusalsNameTheFunction) {
  EXPECT_ERROR(testing::error_of([] { encode_jpeg(Image{4, 4, 3, std::vector<uint8_t>(5)}); }), "encode_jpeg", "5");
  EXPECT_ERROR(testing::error_of([] { encode_jpeg(make_image(2, 2, 3), 0); }), "encode_jpeg", "0");
  EXPECT_TRUE(testing::contains(testing::error_of([] { encode_jpeg(make_image(65'501, 1, 1)); }), "encode_jpeg: "));
}

}  // namespace
}  // namespace vitrail::image
