// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/relative_position_bias.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden.h"

namespace vitrail::nn {
namespace {

RelativePositionBias numbered(std::array<int64_t, 2> grid, RelativePositionResampling resampling = {}) {
  RandomParams params(1);
  RelativePositionBias layer({grid, 2, resampling}, ParamSource(params));
  const Tensor table = layer.parameter("relative_position_bias_table");
  for (int64_t i = 0; i < table.numel(); ++i) table.data<float>()[i] = static_cast<float>(i);
  return layer;
}

// Row r of the table has the values 2r and 2r + 1.
TEST(RelativePositionBias, EachPairOfTokensHasTheRowOfItsDistance) {
  const Tensor bias = numbered({2, 3}).forward({2, 3});
  ASSERT_EQ(bias.shape(), (Shape{1, 2, 7, 7}));
  const auto at = [&](int64_t query, int64_t key) { return bias.data<float>()[query * 7 + key]; };
  const auto row = [](int64_t dy, int64_t dx) { return static_cast<float>(2 * ((dy + 1) * 5 + dx + 2)); };
  EXPECT_EQ(at(1, 1), row(0, 0));
  EXPECT_EQ(at(1, 6), row(-1, -2));
  EXPECT_EQ(at(6, 1), row(1, 2));
  EXPECT_EQ(at(2, 4), row(-1, 1));
  EXPECT_EQ(at(0, 3), 2.0F * 15) << "the class token for a patch";
  EXPECT_EQ(at(3, 0), 2.0F * 16) << "a patch for the class token";
  EXPECT_EQ(at(0, 0), 2.0F * 17);
  EXPECT_EQ(bias.data<float>()[49], 2.0F * 17 + 1) << "the second head";
}

// A table that is linear in dy stays linear in it, up to the borders, and the class token's rows stay as they are.
TEST(RelativePositionBias, AnotherGridHasResampledRows) {
  for (const auto resampling : {RelativePositionResampling::geometric, RelativePositionResampling::bilinear}) {
    const Tensor bias = numbered({3, 3}, resampling).forward({5, 4});
    ASSERT_EQ(bias.shape(), (Shape{1, 2, 21, 21}));
    EXPECT_EQ(bias.data<float>()[0], 2.0F * 27) << "the class token";
    EXPECT_FLOAT_EQ(bias.data<float>()[22], 2.0F * 12) << "the centre";
    EXPECT_GT(bias.data<float>()[20 * 21 + 1], bias.data<float>()[22]) << "a larger dy";
  }
  EXPECT_FALSE(testing::close(numbered({3, 3}, RelativePositionResampling::geometric).forward({5, 4}),
                              numbered({3, 3}, RelativePositionResampling::bilinear).forward({5, 4}), 1e-2));
}

// Tables of a resampled grid: rows of linear interpolation at half-pixel centres, along both axes.
TEST(RelativePositionBias, BilinearRowsAreInterpolatedAlongBothAxes) {
  const Tensor table = numbered({2, 3}).parameter("relative_position_bias_table");  // 3 × 5 distances, and 3 rows
  const auto place = [](int64_t i, double from, double to) {
    return std::clamp((static_cast<double>(i) + 0.5) * from / to - 0.5, 0.0, from - 1);
  };
  const std::array<int64_t, 2> grid{3, 2};  // 5 × 3 distances
  const Tensor bias = numbered({2, 3}, RelativePositionResampling::bilinear).forward(grid);
  ASSERT_EQ(bias.shape(), (Shape{1, 2, 7, 7}));
  for (int64_t query = 0; query < 6; ++query) {
    for (int64_t key = 0; key < 6; ++key) {
      const int64_t dy = query / 2 - key / 2 + 2, dx = query % 2 - key % 2 + 1;
      // Row r of the table has the values 2r and 2r + 1: it is linear in its indices, and so is the interpolation.
      const double row = place(dy, 3, 5) * 5 + place(dx, 5, 3);
      EXPECT_NEAR(bias.data<float>()[(query + 1) * 7 + key + 1], 2 * row, 1e-5) << query << " " << key;
      EXPECT_NEAR(bias.data<float>()[49 + (query + 1) * 7 + key + 1], 2 * row + 1, 1e-5) << query << " " << key;
    }
  }
  EXPECT_EQ(bias.data<float>()[1], 2.0F * 15) << "the class token for a patch";
  EXPECT_EQ(bias.data<float>()[7], 2.0F * 16) << "a patch for the class token";
}

}  // namespace
}  // namespace vitrail::nn
