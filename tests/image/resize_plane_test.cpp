// SPDX-License-Identifier: Apache-2.0
#include "vitrail/image/resize_plane.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"

namespace vitrail::image {
namespace {

// torch.nn.functional.interpolate(x, size, mode="bicubic", align_corners=False) of x = [[0, 1, 4], [9, 16, 25]].
TEST(ResizePlane, EqualsTorch) {
  const Tensor x = Tensor::from<float>({2, 3}, {0, 1, 4, 9, 16, 25});
  EXPECT_TRUE(testing::close(
      resize_plane(x, 3, 5),
      Tensor::from<float>({3, 5}, {-0.82725f, -0.773833f, -0.302083f, 1.24967f, 2.41508f, 4.116f, 5.62f, 8.5f, 12.46f,
                                   15.076f, 9.05925f, 12.0138f, 17.3021f, 23.6703f, 27.7369f}),
      1e-4));
  EXPECT_TRUE(testing::close(resize_plane(x, 1, 2), Tensor::from<float>({1, 2}, {5.19531f, 13.2812f}), 1e-4));
  EXPECT_TRUE(testing::close(resize_plane(x, 2, 3), x, 0)) << "the same size";
}

TEST(ResizePlane, RefusesOtherShapes) {
  EXPECT_ERROR(testing::error_of([] { resize_plane(Tensor::zeros({2}), 1, 1); }), "resize_plane", "[2] to 1×1");
  EXPECT_ERROR(testing::error_of([] { resize_plane(Tensor::zeros({2, 2}), 0, 1); }), "resize_plane", "[2, 2] to 0×1");
}

}  // namespace
}  // namespace vitrail::image
