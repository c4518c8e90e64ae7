// SPDX-License-Identifier: Apache-2.0
// DINOv3's processor against transformers' (tools/golden/image_floats.py).
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/base/error.h"
#include "vitrail/image/resize_floats_internal.h"
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

TEST(ResizeFloats, BlueGreenRedGivesTheSameTensor) {
  std::vector<uint8_t> rgb(5 * 7 * 3), bgr(rgb.size());
  for (size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<uint8_t>(i * 37 % 256);
  for (size_t i = 0; i < rgb.size(); ++i) bgr[i] = rgb[i / 3 * 3 + 2 - i % 3];
  EXPECT_TRUE(testing::close(apply(ImageView(bgr.data(), 7, 5, PixelFormat::bgr), dinov3_transform()),
                             apply(ImageView(rgb.data(), 7, 5, PixelFormat::rgb), dinov3_transform()), 0));
}

}  // namespace
}  // namespace vitrail::image
