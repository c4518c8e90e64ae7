// SPDX-License-Identifier: Apache-2.0
// DINOv3's processor against transformers' (tools/golden/image_floats.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/image/resize_floats_internal.h"
#include "vitrail/image/resize_internal.h"
#include "vitrail/image/transform.h"

namespace vitrail::image {
namespace {

EvalTransform dinov3_transform() {
  EvalTransform transform;
  transform.interpolation = Filter::bilinear;
  transform.processor = ProcessorSteps{.size = {12, 16}, .resize_floats = true};
  return transform;
}

TEST(ResizeFloats, EqualsTheProcessorOfDinov3) {
  const testing::Golden golden = testing::read_golden(testing::fixture("image/resize_floats.safetensors"));
  for (const std::string name : {"smaller", "larger", "wide"}) {
    const Tensor source = golden[name + ".source"];
    const ImageView view(source.data<uint8_t>(), source.size(1), source.size(0), PixelFormat::rgb);
    // Weights have 22 fractional bits, and a value of 255 has an error of 2^-14 after two passes.
    EXPECT_TRUE(testing::close(apply(view, dinov3_transform()), golden[name + ".result"], 2e-6)) << name;
    EvalTransform bytes = dinov3_transform();
    bytes.processor->resize_floats = false;
    EXPECT_FALSE(testing::close(apply(view, bytes), golden[name + ".result"], 1e-3)) << name;
  }
}

TEST(ResizeFloats, OtherSizesAndTheNearestFilterAreErrors) {
  const std::vector<uint8_t> pixels(5 * 7 * 3);
  const ImageView view(pixels.data(), 7, 5, PixelFormat::rgb);
  EXPECT_EQ(resize_floats(view, 2, 3, Filter::bicubic).size(), 18U);
  EXPECT_THROW(resize_floats(view, 2, 3, Filter::nearest), Error);
  EXPECT_THROW(resize_floats(view, 0, 3, Filter::bicubic), Error);
  EXPECT_THROW(resize_floats(view, 2, 0, Filter::bicubic), Error);
}

// torch.nn.functional.interpolate(x, mode="bilinear", align_corners=False) of [0, 10, 20, 90, 100, 50].
TEST(ResizeFloats, WithoutAntialiasAValueIsBetweenTwoSamples) {
  const std::vector<uint8_t> pixels{0, 10, 20, 90, 100, 50};
  const auto expect = [](const ImageView& view, int64_t width, int64_t height, const std::vector<float>& want) {
    const std::vector<float> got = resize_floats(view, width, height, Filter::bilinear, false);
    ASSERT_EQ(got.size(), want.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
  };
  const ImageView row(pixels.data(), 6, 1, PixelFormat::grey), column(pixels.data(), 1, 6, PixelFormat::grey);
  expect(row, 2, 1, {10, 100});
  expect(row, 4, 1, {2.5F, 17.5F, 92.5F, 62.5F});
  expect(row, 12, 1, {0, 2.5F, 7.5F, 12.5F, 17.5F, 37.5F, 72.5F, 92.5F, 97.5F, 87.5F, 62.5F, 50});
  expect(column, 1, 4, {2.5F, 17.5F, 92.5F, 62.5F});
  EXPECT_THROW(resize_floats(row, 2, 1, Filter::bicubic, false), Error);
  EvalTransform transform = dinov3_transform();
  transform.processor->antialias = false;
  const std::vector<uint8_t> many(40 * 30 * 3, 7);
  EXPECT_EQ(apply(ImageView(many.data(), 40, 30, PixelFormat::rgb), transform).shape(), (Shape{3, 12, 16}));
}

TEST(ResizeFloats, BlueGreenRedGivesTheSameTensor) {
  std::vector<uint8_t> rgb(5 * 7 * 3), bgr(rgb.size());
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(i * 37 % 256);
  for (size_t i = 0; i < rgb.size(); ++i) bgr[i] = rgb[i / 3 * 3 + 2 - i % 3];
  EXPECT_TRUE(testing::close(apply(ImageView(bgr.data(), 7, 5, PixelFormat::bgr), dinov3_transform()),
                             apply(ImageView(rgb.data(), 7, 5, PixelFormat::rgb), dinov3_transform()), 0));
}

// The same weights as resize() has, whose results are rounded after each pass.
TEST(ResizeFloats, AreTheBytesOfResizeBeforeTheirRounding) {
  for (const PixelFormat format : {PixelFormat::grey, PixelFormat::rgb}) {
    std::vector<uint8_t> pixels(static_cast<size_t>(9 * 7 * (format == PixelFormat::grey ? 1 : 3)));
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(60 + i * 31 % 120);
    const ImageView view(pixels.data(), 9, 7, format);
    for (const Filter filter : {Filter::box, Filter::bilinear, Filter::hamming, Filter::bicubic, Filter::lanczos}) {
      for (const auto& [width, height] : {std::pair<int64_t, int64_t>{4, 11}, {13, 3}, {9, 7}, {1, 1}}) {
        const std::vector<float> floats = resize_floats(view, width, height, filter);
        const Image bytes = resize(view, width, height, filter);
        ASSERT_EQ(floats.size(), bytes.pixels.size());
        // A rounding of half in each pass; the second one's weights may sum to more than 1 without their signs.
        for (size_t i = 0; i < floats.size(); ++i) EXPECT_NEAR(floats[i], bytes.pixels[i], 1.3) << name_of(filter) << i;
      }
    }
  }
}

TEST(ResizeFloats, RefusalsNameTheSizeOrTheFilter) {
  const std::vector<uint8_t> pixels(6);
  const ImageView view(pixels.data(), 2, 1, PixelFormat::rgb);
  EXPECT_ERROR(testing::error_of([&] { resize_floats(view, 0, 3, Filter::box); }), "resize", "0×3");
  EXPECT_ERROR(testing::error_of([&] { resize_floats(view, 3, -1, Filter::box); }), "resize", "3×-1");
  EXPECT_ERROR(testing::error_of([&] { resize_floats(view, 3, 3, Filter::nearest); }), "resize to floats", "nearest");
  EXPECT_EQ(resize_floats(view, 1, 1, Filter::box).size(), 3u);
}

// Alpha is dropped before the resize, and the size is that of the processor.
TEST(ResizeFloats, AlphaIsNoChannelOfTheModel) {
  std::vector<uint8_t> rgba(5 * 7 * 4, 200), rgb(5 * 7 * 3);
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = rgba[i / 3 * 4 + i % 3] = static_cast<uint8_t>(i * 53 % 256);
  const Tensor got = apply(ImageView(rgba.data(), 7, 5, PixelFormat::rgba), dinov3_transform());
  EXPECT_EQ(got.shape(), (Shape{3, 12, 16}));
  EXPECT_TRUE(testing::close(got, apply(ImageView(rgb.data(), 7, 5, PixelFormat::rgb), dinov3_transform()), 0));
  EvalTransform two_means = dinov3_transform();
  two_means.mean = {0.5, 0.5};
  EXPECT_THROW(apply(ImageView(rgb.data(), 7, 5, PixelFormat::rgb), two_means), Error);
}

}  // namespace
}  // namespace vitrail::image
