// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/relative_position_bias.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace vitrail::nn
