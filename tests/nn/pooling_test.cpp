// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

Tensor sample_map(int64_t rows, int64_t columns, int64_t channels) {
  const Tensor map = Tensor::empty({1, rows, columns, channels});
  for (int64_t i = 0; i < map.numel(); ++i) map.data<float>()[i] = static_cast<float>(i * 37 % 53) - 26;
  return map;
}

float at(const Tensor& map, int64_t y, int64_t x, int64_t c) {
  return map.data<float>()[(y * map.size(2) + x) * map.size(3) + c];
}

TEST(MaxPool, TakesTheLargestOfFourCellsAndLeavesOutTheLastOddOnes) {
  const Tensor map = sample_map(5, 7, 3), pooled = max_pool_2x2(map);
  ASSERT_EQ(pooled.shape(), (Shape{1, 2, 3, 3}));
  for (int64_t y = 0; y < 2; ++y) {
    for (int64_t x = 0; x < 3; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const float want = std::max({at(map, 2 * y, 2 * x, c), at(map, 2 * y, 2 * x + 1, c),
                                     at(map, 2 * y + 1, 2 * x, c), at(map, 2 * y + 1, 2 * x + 1, c)});
        EXPECT_EQ(at(pooled, y, x, c), want);
      }
    }
  }
  EXPECT_ERROR(error_of([] { max_pool_2x2(Tensor::zeros({1, 1, 4, 2})); }), "max_pool_2x2", "[1, 1, 4, 2]");
}

// torch.nn.AdaptiveAvgPool2d: cells overlap where the size does not divide the map, and where it is larger.
TEST(AdaptiveAvgPool, CellsAreThoseOfTorch) {
  const Tensor map = sample_map(3, 5, 2);
  for (const int64_t size : {1, 2, 3, 6}) {
    const Tensor pooled = adaptive_avg_pool(map, size);
    ASSERT_EQ(pooled.shape(), (Shape{1, size, size, 2}));
    for (int64_t i = 0; i < size * size; ++i) {
      const int64_t y = i / size, x = i % size;
      const int64_t top = y * 3 / size, bottom = (3 * (y + 1) + size - 1) / size;
      const int64_t left = x * 5 / size, right = (5 * (x + 1) + size - 1) / size;
      double sum = 0;
      for (int64_t row = top; row < bottom; ++row)
        for (int64_t column = left; column < right; ++column) sum += at(map, row, column, 1);
      EXPECT_NEAR(at(pooled, y, x, 1), sum / static_cast<double>((bottom - top) * (right - left)), 1e-5);
    }
  }
  EXPECT_ERROR(error_of([&] { adaptive_avg_pool(map, 0); }), "adaptive_avg_pool", "[1, 3, 5, 2] and 0");
}

}  // namespace
}  // namespace vitrail::nn
