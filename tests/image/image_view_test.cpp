// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/image_view.h"

#include "tests/image/support.h"
#include "vitrail/base/error.h"
#include "vitrail/image/transform.h"

namespace vitrail::image {
namespace {

constexpr int64_t kViewWidth = 53, kViewHeight = 37;

Image photograph(int64_t channels) {
  Image image = make_image(kViewWidth, kViewHeight, channels);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(i * i / 7 + 31 * (i % 11));
  return image;
}

// The pixels of an image in another format, as a window of a larger buffer.
struct Buffer {
  std::vector<uint8_t> bytes = {};
  int64_t stride = 0;
  size_t first = 0;  // the offset of the window

  ImageView view(PixelFormat format) const { return {bytes.data() + first, kViewWidth, kViewHeight, format, stride}; }
};

Buffer buffer_of(const Image& image, PixelFormat format) {
  const int64_t channels = format == PixelFormat::grey ? 1 : format < PixelFormat::rgba ? 3 : 4;
  const bool blue_first = format == PixelFormat::bgr || format == PixelFormat::bgra;
  Buffer buffer{.stride = kViewWidth * channels + 29, .first = 17};
  // The memory ends with the last pixel: the address sanitizer sees a read past it.
  buffer.bytes.assign(buffer.first + static_cast<size_t>((kViewHeight - 1) * buffer.stride + kViewWidth * channels),
                      0xab);
  for (int64_t y = 0; y < kViewHeight; ++y) {
    for (int64_t x = 0; x < kViewWidth; ++x) {
      const uint8_t* from = image.row(y) + x * image.channels;
      uint8_t* to = buffer.bytes.data() + buffer.first + y * buffer.stride + x * channels;
      for (int64_t c = 0; c < image.channels; ++c) to[blue_first ? 2 - c : c] = from[c];
    }
  }
  return buffer;
}

class ViewOf : public ::testing::TestWithParam<PixelFormat> {};

TEST_P(ViewOf, GivesTheInputOfTheSameImage) {
  const Image image = photograph(GetParam() == PixelFormat::grey ? 1 : 3);
  const Buffer buffer = buffer_of(image, GetParam());
  EvalTransform transform;
  transform.size = {32, 24};
  transform.mean = transform.std = {0.5};
  for (const CropMode mode : {CropMode::center, CropMode::squash, CropMode::border}) {
    for (const Filter filter : {Filter::bicubic, Filter::nearest}) {
      transform.crop_mode = mode;
      transform.interpolation = filter;
      const ImageView view = buffer.view(GetParam());
      EXPECT_TRUE(same_pixels(apply_geometry(view, transform), apply_geometry(image, transform)));
      const Tensor got = apply(view, transform), want = apply(image, transform);
      ASSERT_EQ(got.shape(), want.shape());
      EXPECT_EQ(std::memcmp(got.data<float>(), want.data<float>(), static_cast<size_t>(want.numel()) * 4), 0);
    }
  }
}

TEST_P(ViewOf, IsCopiedInEitherColorMode) {
  const bool is_grey = GetParam() == PixelFormat::grey;
  const Image image = photograph(is_grey ? 1 : 3);
  const Buffer buffer = buffer_of(image, GetParam());
  EXPECT_TRUE(same_pixels(to_image(buffer.view(GetParam()), is_grey ? ColorMode::grey : ColorMode::rgb), image));
  const Image other = to_image(buffer.view(GetParam()), is_grey ? ColorMode::rgb : ColorMode::grey);
  ASSERT_EQ(other.channels, is_grey ? 3 : 1);
  const uint8_t* p = image.row(20) + 9 * image.channels;
  // Pillow's convert("L"): (299 R + 587 G + 114 B) / 1000, rounded.
  const int want = is_grey ? p[0] : static_cast<int>(std::lround((299.0 * p[0] + 587.0 * p[1] + 114.0 * p[2]) / 1000));
  EXPECT_EQ(other.row(20)[9 * other.channels], want);
}

INSTANTIATE_TEST_SUITE_P(Formats, ViewOf,
                         ::testing::Values(PixelFormat::grey, PixelFormat::rgb, PixelFormat::bgr, PixelFormat::rgba,
                                           PixelFormat::bgra));

TEST(ImageView, InvalidMemoryIsRefused) {
  const std::vector<uint8_t> bytes(300);
  EXPECT_THROW(ImageView(nullptr, 10, 10, PixelFormat::rgb), Error);
  EXPECT_THROW(ImageView(bytes.data(), 0, 10, PixelFormat::rgb), Error);
  EXPECT_THROW(ImageView(bytes.data(), 10, -1, PixelFormat::rgb), Error);
  EXPECT_THROW(ImageView(bytes.data(), int64_t{1} << 62, 10, PixelFormat::rgba), Error);
  EXPECT_THROW(ImageView(bytes.data(), 10, 10, PixelFormat::rgb, 29), Error);
  EXPECT_THROW(ImageView(Image{10, 10, 3, std::vector<uint8_t>(299)}), Error);
  EXPECT_EQ(ImageView(bytes.data(), 10, 10, PixelFormat::rgb).stride(), 30);
}

}  // namespace
}  // namespace vitrail::image
