// SPDX-License-Identifier: Apache-2.0
// Images, views and filters: what they are by default, and what is refused.
#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/image/color_internal.h"
#include "vitrail/image/crop_internal.h"
#include "vitrail/image/filter.h"
#include "vitrail/image/image_view.h"

namespace vitrail::image {
namespace {

using testing::error_of;
using Pixels = std::vector<uint8_t>;

TEST(CheckImage, NeedsASizeOneOrThreeChannelsAndTheirBytes) {
  for (const int64_t channels : {1, 3}) {
    EXPECT_NO_THROW(check_image({5, 2, channels, Pixels(static_cast<size_t>(10 * channels))}, "x"));
  }
  EXPECT_NO_THROW(check_image({1, 1, 1, Pixels(1)}, "x"));
  const auto refusal = [](const Image& image) { return error_of([&] { check_image(image, "crop"); }); };
  const std::string begin = "crop: expected a non-empty image with 1 or 3 channels, got ";
  EXPECT_EQ(refusal({0, 2, 3, {}}), begin + "0×2 with 3 channels");
  EXPECT_EQ(refusal({2, 0, 3, {}}), begin + "2×0 with 3 channels");
  EXPECT_EQ(refusal({-2, -3, 1, Pixels(6)}), begin + "-2×-3 with 1 channels");
  EXPECT_EQ(refusal({5, 2, 2, Pixels(20)}), begin + "5×2 with 2 channels");
  EXPECT_EQ(refusal({5, 2, 4, Pixels(40)}), begin + "5×2 with 4 channels");
  EXPECT_EQ(refusal({5, 2, 0, {}}), begin + "5×2 with 0 channels");
  EXPECT_ERROR(refusal({5, 2, 3, Pixels(29)}), "crop", "29");
  EXPECT_ERROR(refusal({5, 2, 3, Pixels(31)}), "crop", "31");
}

TEST(Image, HasRowsOfItsWidthAndChannels) {
  Image image = make_image(5, 2, 3);
  EXPECT_EQ(image.width, 5);
  EXPECT_EQ(image.height, 2);
  EXPECT_EQ(image.channels, 3);
  EXPECT_EQ(image.pixels, Pixels(30, 0));
  EXPECT_EQ(image.row_bytes(), 15);
  EXPECT_EQ(image.row(1) - image.pixels.data(), 15);
  EXPECT_EQ(channels_of(ColorMode::rgb), 3);
  EXPECT_EQ(channels_of(ColorMode::grey), 1);
}

TEST(ImageView, RefusalsSayWhatIsWrong) {
  const Pixels bytes(400);
  const auto refusal = [&](const uint8_t* pixels, int64_t width, int64_t height, PixelFormat format, int64_t stride) {
    return error_of([&] { ImageView(pixels, width, height, format, stride); });
  };
  const std::string begin = "image view: expected a pointer to pixels and sizes above 0, got ";
  EXPECT_EQ(refusal(nullptr, 4, 3, PixelFormat::rgb, 0), begin + "a null pointer and 4×3");
  EXPECT_EQ(refusal(bytes.data(), 0, 3, PixelFormat::rgb, 0), begin + "0×3");
  EXPECT_EQ(refusal(bytes.data(), 4, 0, PixelFormat::rgb, 0), begin + "4×0");
  EXPECT_EQ(refusal(bytes.data(), int64_t{1} << 31, 3, PixelFormat::grey, 0), begin + "2147483648×3");
  EXPECT_EQ(refusal(bytes.data(), 3, int64_t{1} << 31, PixelFormat::grey, 0), begin + "3×2147483648");
  EXPECT_NO_THROW(ImageView(bytes.data(), 3, 0x7fffffff, PixelFormat::grey));
  EXPECT_NO_THROW(ImageView(bytes.data(), 0x7fffffff, 3, PixelFormat::grey));
  const std::pair<PixelFormat, int64_t> sizes[] = {{PixelFormat::grey, 1},
                                                   {PixelFormat::rgb, 3},
                                                   {PixelFormat::bgr, 3},
                                                   {PixelFormat::rgba, 4},
                                                   {PixelFormat::bgra, 4}};
  for (const auto& [format, size] : sizes) {
    EXPECT_EQ(refusal(bytes.data(), 7, 2, format, 7 * size - 1), "image view: expected rows at least " +
                                                                     std::to_string(7 * size) + " bytes apart, got " +
                                                                     std::to_string(7 * size - 1));
    EXPECT_EQ(ImageView(bytes.data(), 7, 2, format, 7 * size).stride(), 7 * size);
    EXPECT_EQ(ImageView(bytes.data(), 7, 2, format, 7 * size + 3).row(2) - bytes.data(), 2 * (7 * size + 3));
    const ImageView view(bytes.data(), 7, 2, format);
    EXPECT_EQ(view.stride(), 7 * size);
    EXPECT_EQ(view.channels(), size);
    EXPECT_EQ(view.width(), 7);
    EXPECT_EQ(view.height(), 2);
    EXPECT_EQ(view.format(), format);
  }
}

TEST(ImageView, OfAnImageHasItsSizeAndFormat) {
  const Image grey = make_image(5, 2, 1), colour = make_image(5, 2, 3);
  EXPECT_EQ(ImageView(grey).format(), PixelFormat::grey);
  EXPECT_EQ(ImageView(colour).format(), PixelFormat::rgb);
  EXPECT_EQ(ImageView(colour).width(), 5);
  EXPECT_EQ(ImageView(colour).height(), 2);
  EXPECT_EQ(ImageView(colour).stride(), 15);
  EXPECT_EQ(ImageView(colour).row(1), colour.row(1));
  EXPECT_ERROR(error_of([] { ImageView(Image{2, 2, 3, Pixels(3)}); }), "image", "3");
}

// The numbers are those that configurations of Hugging Face store.
TEST(Filter, HasTheNumbersAndNamesOfPillow) {
  const std::pair<const char*, int> filters[] = {{"nearest", 0}, {"lanczos", 1}, {"bilinear", 2},
                                                 {"bicubic", 3}, {"box", 4},     {"hamming", 5}};
  for (const auto& [name, number] : filters) {
    EXPECT_STREQ(name_of(static_cast<Filter>(number)), name);
    EXPECT_EQ(static_cast<int>(filter_from_name(name)), number) << name;
  }
  EXPECT_ERROR(error_of([] { filter_from_name("Random"); }), "interpolation", "'Random'");
  EXPECT_THROW(filter_from_name(""), Error);
}

TEST(ToMode, ConvertsOrMovesTheImage) {
  const Image colour{2, 1, 3, {10, 200, 30, 0, 0, 255}}, grey{2, 1, 1, {7, 250}};
  EXPECT_EQ(to_mode(colour, ColorMode::rgb).pixels, colour.pixels);
  EXPECT_EQ(to_mode(grey, ColorMode::grey).pixels, grey.pixels);
  EXPECT_EQ(to_mode(grey, ColorMode::rgb).pixels, (Pixels{7, 7, 7, 250, 250, 250}));
  EXPECT_EQ(to_mode(grey, ColorMode::rgb).channels, 3);
  // (299 R + 587 G + 114 B) / 1000: 123.81 and 29.07
  EXPECT_EQ(to_mode(colour, ColorMode::grey).pixels, (Pixels{124, 29}));
  EXPECT_EQ(to_mode(colour, ColorMode::grey).channels, 1);
  EXPECT_EQ(luma(255, 255, 255), 255);
  EXPECT_EQ(luma(255, 0, 0), 76);
  EXPECT_EQ(luma(0, 255, 0), 150);
  EXPECT_EQ(luma(0, 0, 0), 0);
}

TEST(FromPalette, TakesTheColoursOfTheIndices) {
  Palette palette{};
  palette[2] = {10, 200, 30}, palette[255] = {0, 0, 255};
  const Pixels indices{255, 2, 9, 2};
  const Image colour = from_palette(indices, 4, 1, palette, ColorMode::rgb);
  EXPECT_EQ(colour.pixels, (Pixels{0, 0, 255, 10, 200, 30, 0, 0, 0, 10, 200, 30}));
  const Image grey = from_palette(indices, 1, 4, palette, ColorMode::grey);
  EXPECT_EQ(grey.pixels, (Pixels{29, 124, 0, 124}));
  EXPECT_EQ(grey.width, 1);
  EXPECT_EQ(grey.height, 4);
}

TEST(Crop, RefusalsSayWhatIsWrong) {
  const Image image = make_image(5, 4, 3);
  EXPECT_ERROR(error_of([&] { crop(image, {0, 0, 0, 2}); }), "crop", "0×2");
  EXPECT_ERROR(error_of([&] { crop(image, {0, 0, 2, -1}); }), "crop", "2×-1");
  EXPECT_ERROR(error_of([&] { crop(Image{5, 4, 3, {}}, {0, 0, 2, 2}); }), "crop", "0");
  EXPECT_ERROR(error_of([&] {
                 crop(image, {-5, 1, 5, 2}, Padding::reflect);
               }),
               "crop", "a window that reaches 5 and -1 pixels beyond 5×4");
  EXPECT_ERROR(error_of([&] {
                 crop(image, {1, 1, 2, 7}, Padding::reflect);
               }),
               "crop", "a window that reaches -1 and 4 pixels beyond 5×4");
  EXPECT_EQ(crop(image, {-9, -9, 3, 2}).pixels, Pixels(18, 0)) << "constant and black by default";
}

}  // namespace
}  // namespace vitrail::image
