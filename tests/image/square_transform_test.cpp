// SPDX-License-Identifier: Apache-2.0
// Values of the reference: tests/tasks/owl_test.cpp.
#include "vitrail/image/square_transform.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"

namespace vitrail::image {
namespace {

EvalTransform square_of(int64_t size) {
  EvalTransform transform;
  transform.mean = {0};
  transform.std = {1};
  transform.processor = ProcessorSteps{.size = {size, size}};
  return transform;
}

TEST(SquareTransform, IsBlackRightOfTheImageAndBelow) {
  const Image tall{.width = 1, .height = 2, .channels = 1, .pixels = {255, 51}};
  const Tensor same = apply_to_square(tall, square_of(2));
  EXPECT_EQ(same.shape(), (Shape{1, 2, 2}));
  const float want[] = {1, 0, 0.2F, 0};
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(same.data<float>()[i], want[i], 1e-6) << i;
}

// The positions −1/4, 1/4, 3/4 and 5/4 in a line 0, 1; the first and the last one are mirrored.
TEST(SquareTransform, InterpolatesLinearlyWithMirroredBorders) {
  const Image square{.width = 2, .height = 2, .channels = 1, .pixels = {0, 255, 0, 255}};
  const Tensor large = apply_to_square(square, square_of(4));
  const float want[] = {0.25F, 0.25F, 0.75F, 0.75F};
  for (size_t i = 0; i < 16; ++i) EXPECT_NEAR(large.data<float>()[i], want[i % 4], 1e-6) << i;
}

TEST(SquareTransform, KeepsWhatIsConstantWhenItShrinks) {
  Image square = make_image(7, 7, 3);
  std::fill(square.pixels.begin(), square.pixels.end(), uint8_t{51});
  for (const int64_t size : {1, 2, 3}) {
    const Tensor small = apply_to_square(square, square_of(size));
    for (int64_t i = 0; i < small.numel(); ++i) EXPECT_NEAR(small.data<float>()[i], 0.2F, 1e-6) << size;
  }
}

TEST(SquareTransform, ItsResultIsASquare) {
  EvalTransform transform = square_of(4);
  transform.processor->size = {4, 6};
  EXPECT_ERROR(testing::error_of([&] { apply_to_square(make_image(2, 2, 1), transform); }), "transform", "6×4");
}

}  // namespace
}  // namespace vitrail::image
