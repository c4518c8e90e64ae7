// SPDX-License-Identifier: Apache-2.0
// How an image gets into a model's frame.
#include "vitrail/sam/image_input_internal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/sam_fixture.h"
#include "vitrail/models/sam/sam.h"

namespace vitrail::sam {
namespace {

using models::SamPreprocessing;

const InputFrame kSam{.size = 16};
const InputFrame kMedSam{.size = 16, .preprocessing = SamPreprocessing::medsam};

TEST(InputFrame, TheLongSideHasTheFramesSizeOrBothHave) {
  using Sides = std::array<int64_t, 2>;
  EXPECT_EQ(kSam.sides(100, 50), (Sides{16, 8}));
  EXPECT_EQ(kSam.sides(50, 100), (Sides{8, 16}));
  EXPECT_EQ(kSam.sides(16, 16), (Sides{16, 16}));
  EXPECT_EQ(kSam.sides(3, 4), (Sides{12, 16}));
  EXPECT_EQ(kSam.sides(32, 3), (Sides{16, 2}));    // 1.5 is rounded up
  EXPECT_EQ(kSam.sides(160, 14), (Sides{16, 1}));  // 1.4 is rounded down
  EXPECT_EQ(kSam.sides(160, 4), (Sides{16, 0}));
  EXPECT_EQ(kMedSam.sides(100, 50), (Sides{16, 16}));
  EXPECT_THROW(kSam.resized(image::make_image(4, 160, 3)), Error);
  EXPECT_EQ(kSam.resized(image::make_image(5, 160, 3)).width, 1);
  EXPECT_EQ(kMedSam.resized(image::make_image(4, 160, 3)).width, 16);
  EXPECT_EQ(kSam.resized(image::make_image(50, 100, 1)).channels, 3);  // grey becomes RGB
}

TEST(InputFrame, PixelsAreNormalisedAndTheRestIsZero) {
  image::Image image = image::make_image(2, 3, 3);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<uint8_t>(10 * i);
  std::vector<float> input(3 * 4 * 4, 77);
  InputFrame{.size = 4}.write(image, input.data());
  const float mean[] = {123.675F, 116.28F, 103.53F}, std[] = {58.395F, 57.12F, 57.375F};
  for (size_t c = 0; c < 3; ++c) {
    for (size_t y = 0; y < 4; ++y) {
      for (size_t x = 0; x < 4; ++x) {
        const bool inside = x < 2 && y < 3;
        const float value = static_cast<float>(10 * (3 * (2 * y + x) + c));
        EXPECT_FLOAT_EQ(input[(c * 4 + y) * 4 + x], inside ? (value - mean[c]) / std[c] : 0) << c << y << x;
      }
    }
  }
}

TEST(InputFrame, MedSamScalesToTheRangeOfTheValues) {
  image::Image image = image::make_image(2, 2, 3);
  image.pixels = {50, 60, 70, 80, 90, 100, 110, 120, 130, 140, 150, 250};
  std::vector<float> input(12);
  const InputFrame frame{.size = 2, .preprocessing = SamPreprocessing::medsam};
  frame.write(image, input.data());
  for (size_t i = 0; i < 4; ++i) {
    for (size_t c = 0; c < 3; ++c)
      EXPECT_FLOAT_EQ(input[4 * c + i], static_cast<float>(image.pixels[3 * i + c] - 50) / 200);
  }
  std::fill(image.pixels.begin(), image.pixels.end(), uint8_t{9});  // one value has no range
  frame.write(image, input.data());
  EXPECT_EQ(input, std::vector<float>(12, 0));
}

// The part of the frame that the image fills is enlarged, not the padding.
TEST(InputFrame, LogitsOfTheImageLeaveThePaddingOut) {
  Tensor mask = Tensor::full({8, 8}, 3);
  mask.narrow(0, 4, 4).copy_(Tensor::full({1}, -3));  // below the image
  const Tensor logits = kSam.image_logits(mask, 8, 16);
  EXPECT_EQ(logits.shape(), (Shape{8, 16}));
  for (int64_t y = 0; y < 6; ++y) EXPECT_FLOAT_EQ(logits.data<float>()[16 * y + 7], 3) << y;
  EXPECT_EQ(kSam.image_logits(mask, 160, 4).shape(), (Shape{160, 4}));
  const Tensor whole = kMedSam.image_logits(mask, 8, 16);
  EXPECT_NEAR(whole.data<float>()[0], 3, 1e-4);
  EXPECT_NEAR(whole.data<float>()[8 * 16 - 1], -3, 1e-4);
}

TEST(InputFrame, AnImageThatIsTooNarrowIsNamed) {
  EXPECT_ERROR(testing::error_of([] { kSam.resized(image::make_image(4, 160, 3)); }), "image", "4×160");
  EXPECT_ERROR(testing::error_of([] { kSam.resized(image::make_image(160, 4, 3)); }), "image", "160×4");
  const image::Image wide = kSam.resized(image::make_image(100, 50, 3)), tall = kMedSam.resized(wide);
  EXPECT_EQ(wide.width, 16);
  EXPECT_EQ(wide.height, 8);
  EXPECT_EQ(tall.width, 16);
  EXPECT_EQ(tall.height, 16);
}

TEST(InputFrame, IsThatOfTheModel) {
  models::SamConfig config = models::load_sam(testing::sam_fixture("medsam").model).config();
  EXPECT_EQ(input_frame(config).size, config.encoder.image_size());
  EXPECT_EQ(input_frame(config).preprocessing, SamPreprocessing::medsam);
  config.preprocessing = SamPreprocessing::segment_anything;
  EXPECT_EQ(input_frame(config).preprocessing, SamPreprocessing::segment_anything);
}

// A logit of the frame is enlarged as a probability: between 0 and 1, log-odds of the mean.
TEST(InputFrame, MedSamEnlargesProbabilities) {
  const Tensor mask = Tensor::from<float>({1, 2}, {0, 4});
  const Tensor logits = kMedSam.image_logits(mask, 1, 4);
  const double high = 1 / (1 + std::exp(-4.0));
  const double parts[] = {0.5, 0.75 * 0.5 + 0.25 * high, 0.25 * 0.5 + 0.75 * high, high};
  for (int64_t i = 0; i < 4; ++i) EXPECT_NEAR(logits.data<float>()[i], std::log(parts[i] / (1 - parts[i])), 1e-4) << i;
}

}  // namespace
}  // namespace vitrail::sam
