// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/relative_position_bias.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

// A table of one head whose value is its index along y (or x): the bias shows where a distance is in the table.
std::vector<double> places_along(int axis, int64_t from, int64_t to, RelativePositionResampling resampling) {
  RandomParams params(1, DType::f64);
  const std::array<int64_t, 2> old = axis == 0 ? std::array<int64_t, 2>{from, 2} : std::array<int64_t, 2>{2, from};
  const std::array<int64_t, 2> grid = axis == 0 ? std::array<int64_t, 2>{to, 2} : std::array<int64_t, 2>{2, to};
  const RelativePositionBias layer({old, 1, resampling}, ParamSource(params));
  const Tensor table = layer.parameter("relative_position_bias_table");
  const int64_t across = 2 * old[1] - 1;
  for (int64_t i = 0; i < table.numel(); ++i)
    table.data<double>()[i] = static_cast<double>(axis == 0 ? i / across : i % across);
  const Tensor bias = layer.forward(grid);
  const int64_t tokens = 1 + grid[0] * grid[1], step = axis == 0 ? 2 : 1;
  std::vector<double> places;
  for (int64_t distance = 1 - to; distance < to; ++distance) {
    const int64_t query = distance > 0 ? distance : 0, key = query - distance;
    places.push_back(bias.data<double>()[(1 + query * step) * tokens + 1 + key * step]);
  }
  return places;
}

void expect_places(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

// Positions 0, ±1, ±(1 + q), …: q of at most 1.5, at least 1.01, or the one whose outermost position fits.
TEST(RelativePositionBias, GeometricPositionsAreSpacedByTheirRatio) {
  for (const int axis : {0, 1}) {
    const auto places = [&](int64_t from, int64_t to) {
      return places_along(axis, from, to, RelativePositionResampling::geometric);
    };
    // 5 positions 0, ±1, ±2.5 for distances up to 4; the outermost positions are cut.
    expect_places(places(3, 5), {0, 0, 1 / 3.0, 1, 2, 3, 4 - 1 / 3.0, 4, 4}, 1e-5);
    // 9 positions 0, ±1, ±2.01, … for distances up to 2.
    expect_places(places(5, 3), {2 + 0.01 / 1.01, 3, 4, 5, 6 - 0.01 / 1.01}, 1e-5);
    // 1 + q + q² = 4
    const double q = (std::sqrt(13.0) - 1) / 2, part = (4 - 3) / (q * q), next = (2 - 1) / q;
    expect_places(places(4, 5), {0, part, 2 - next, 2, 3, 4, 4 + next, 6 - part, 6}, 1e-4);
    expect_places(places(4, 4), {0, 1, 2, 3, 4, 5, 6}, 0);
  }
}

TEST(RelativePositionBias, BilinearPlacesAreHalfPixelCentres) {
  for (const int axis : {0, 1}) {
    const double step = 5.0 / 9;
    std::vector<double> want;
    for (int i = 0; i < 9; ++i) want.push_back(std::clamp((i + 0.5) * step - 0.5, 0.0, 4.0));
    expect_places(places_along(axis, 3, 5, RelativePositionResampling::bilinear), want, 1e-12);
  }
  EXPECT_EQ(RelativePositionBiasConfig().resampling, RelativePositionResampling::geometric);
}

}  // namespace
}  // namespace vitrail::nn
