// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/rotary_embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

RotaryEmbedding embedding(const RotaryEmbeddingConfig& config) {
  RandomParams params(1, DType::f64);
  return RotaryEmbedding(config, ParamSource(params));
}

// Checks cos and sin of angle(patch, i) for i in [0, head_dim / 2).
void expect_angles(const Tensor& table, int64_t patches, int64_t head_dim,
                   const std::function<double(int64_t patch, int64_t i)>& angle) {
  ASSERT_EQ(table.shape(), (Shape{1, 1, patches, head_dim}));
  for (int64_t p = 0; p < patches; ++p) {
    for (int64_t i = 0; i < head_dim / 2; ++i) {
      const double* const row = table.data<double>() + p * head_dim;
      ASSERT_NEAR(row[i], std::cos(angle(p, i)), 1e-12) << p << " " << i;
      ASSERT_NEAR(row[head_dim / 2 + i], std::sin(angle(p, i)), 1e-12) << p << " " << i;
    }
  }
}

// A grid of 2 rows and 3 columns; bands of 3 frequencies θ^(−j/3), for y and then for x.
TEST(RotaryEmbedding, HasTheAnglesOfBothAxes) {
  for (const bool x_first : {false, true}) {
    const auto layer = embedding({.head_dim = 12, .temperature = 100, .offset = 0.5, .x_first = x_first});
    const std::vector<Tensor> tables = layer.tables({2, 3}, DType::f64);
    ASSERT_EQ(tables.size(), 1u);
    expect_angles(tables[0], 6, 12, [&](int64_t p, int64_t i) {
      const bool of_x = (i >= 3) != x_first;
      const double place = static_cast<double>(of_x ? p % 3 : p / 3) + 0.5;
      return place * std::pow(100, -static_cast<double>(i % 3) / 3);
    });
  }
}

TEST(RotaryEmbedding, IsScaledToItsReferenceGrid) {
  const auto layer = embedding({.head_dim = 4, .offset = 1, .reference = std::array<int64_t, 2>{8, 3}});
  expect_angles(layer.tables({2, 6}, DType::f64)[0], 12, 4, [](int64_t p, int64_t i) {
    return i == 0 ? (static_cast<double>(p / 6) + 1) * 8 / 2 : (static_cast<double>(p % 6) + 1) * 3 / 6;
  });
}

TEST(RotaryEmbedding, OfDinov3IsRelativeToTheImage) {
  const auto layer = embedding({.head_dim = 8, .type = RotaryType::dinov3, .periods = {1, 4}});
  expect_angles(layer.tables({3, 2}, DType::f64)[0], 6, 8, [](int64_t p, int64_t i) {
    const double y = 2 * (static_cast<double>(p / 2) + 0.5) / 3 - 1, x = 2 * (static_cast<double>(p % 2) + 0.5) / 2 - 1;
    return 2 * std::numbers::pi * (i < 2 ? y : x) / (i % 2 == 0 ? 1 : 4);
  });
}

// y · freqs[0] + x · freqs[1] of each block and head, or with x first x · freqs[0] + y · freqs[1].
TEST(RotaryEmbedding, OfLearnedFrequenciesDiffersByBlockAndHead) {
  for (const bool x_first : {false, true}) {
    RandomParams params(1, DType::f64);
    const RotaryEmbedding layer(
        {.head_dim = 8, .num_heads = 2, .depth = 3, .type = RotaryType::mixed, .x_first = x_first},
        ParamSource(params));
    const Tensor freqs = layer.parameter("freqs");
    ASSERT_EQ(freqs.shape(), (Shape{2, 3, 2, 4}));
    const std::vector<Tensor> tables = layer.tables({2, 3}, DType::f64);
    ASSERT_EQ(tables.size(), 3u);
    for (int64_t block = 0; block < 3; ++block) {
      ASSERT_EQ(tables[block].shape(), (Shape{1, 2, 6, 8}));
      for (int64_t head = 0; head < 2; ++head) {
        const auto frequency = [&](int64_t axis, int64_t i) {
          return freqs.data<double>()[((axis * 3 + block) * 2 + head) * 4 + i];
        };
        expect_angles(tables[block].narrow(1, head, 1).contiguous(), 6, 8, [&](int64_t p, int64_t i) {
          const auto y = static_cast<double>(p / 3), x = static_cast<double>(p % 3);
          return (x_first ? x : y) * frequency(0, i) + (x_first ? y : x) * frequency(1, i);
        });
      }
    }
    EXPECT_EQ(layer.tables({2, 3}, DType::f32)[2].dtype(), DType::f32);
  }
}

// Frequencies θ^(−j/bands) of a head point into one random direction, and for the second half of its pairs into the
// perpendicular one.
TEST(RotaryEmbedding, LearnedFrequenciesBeginAtRandomDirections) {
  RandomParams params(1, DType::f64);
  const RotaryEmbedding layer(
      {.head_dim = 12, .num_heads = 4, .depth = 2, .type = RotaryType::mixed, .temperature = 10}, ParamSource(params));
  const double* const x = layer.parameter("freqs").data<double>();
  const double* const y = x + 2 * 4 * 6;
  for (int64_t head = 0; head < 8; ++head) {
    for (int64_t j = 0; j < 3; ++j) {
      const int64_t first = head * 6 + j, second = first + 3;
      const double length = std::pow(10, -static_cast<double>(j) / 3);
      EXPECT_NEAR(std::hypot(x[first], y[first]), length, 1e-12);
      EXPECT_NEAR(std::hypot(x[second], y[second]), length, 1e-12);
      EXPECT_NEAR(x[first] * x[second] + y[first] * y[second], 0, 1e-12) << "perpendicular";
      EXPECT_NEAR(x[first] * y[head * 6] - y[first] * x[head * 6], 0, 1e-12) << "one direction";
    }
    if (head > 0) {
      EXPECT_NE(x[head * 6], x[0]);
    }
  }
}

TEST(RotaryEmbedding, RefusesWidthsAndPeriodsThatDoNotFit) {
  for (const int64_t width : {0, 2, 6, -4}) EXPECT_THROW(embedding({.head_dim = width}), Error) << width;
  EXPECT_THROW(embedding({.head_dim = 8, .periods = {1}}), Error);
  EXPECT_TRUE(testing::contains(testing::error_of([] {
                                  embedding({.head_dim = 8, .periods = {1, 2, 3}});
                                }),
                                "2 periods, got 3"));
}

// cos and sin of one band of y and one of x.
void expect_angle(const RotaryEmbedding& layer, std::array<int64_t, 2> grid, int64_t patch, double first,
                  double second) {
  const Tensor table = layer.tables(grid, DType::f64)[0];
  const double* const row = table.data<double>() + patch * 4;
  EXPECT_NEAR(row[0], std::cos(first), 1e-12);
  EXPECT_NEAR(row[1], std::cos(second), 1e-12);
  EXPECT_NEAR(row[2], std::sin(first), 1e-12);
  EXPECT_NEAR(row[3], std::sin(second), 1e-12);
}

TEST(RotaryEmbedding, CoordinatesHaveTheirOffsetAndOrder) {
  RandomParams params(1, DType::f64);
  const ParamSource source(params);
  const auto layer = [&](const RotaryEmbeddingConfig& config) { return RotaryEmbedding(config, source); };
  // Patch 5 of a grid of 2 × 4 is at y = 1, x = 1, patch 7 at y = 1, x = 3.
  expect_angle(layer({.head_dim = 4, .offset = 0.25}), {2, 4}, 7, 1.25, 3.25);
  expect_angle(layer({.head_dim = 4, .offset = 0.25, .x_first = true}), {2, 4}, 7, 3.25, 1.25);
  expect_angle(layer({.head_dim = 4, .offset = 0.25, .x_first = true, .reference = {{6, 8}}}), {2, 4}, 7, 3.25 * 8 / 4,
               1.25 * 6 / 2);
  const double tau = 2 * std::numbers::pi;
  expect_angle(layer({.head_dim = 4, .type = RotaryType::dinov3, .offset = 0.25}), {2, 4}, 7, tau * (2 * 1.75 / 2 - 1),
               tau * (2 * 3.75 / 4 - 1));
  expect_angle(layer({.head_dim = 4, .type = RotaryType::dinov3, .x_first = true}), {2, 4}, 5, tau * (2 * 1.5 / 4 - 1),
               tau * (2 * 1.5 / 2 - 1));
  EXPECT_EQ(RotaryEmbeddingConfig().temperature, 10000);
  const RotaryEmbeddingConfig mixed{.head_dim = 4, .num_heads = 1, .depth = 1, .type = RotaryType::mixed};
  RotaryEmbeddingConfig shifted = mixed;
  shifted.offset = 3;
  shifted.reference = {{9, 9}};
  EXPECT_TRUE(
      testing::close(layer(shifted).tables({2, 3}, DType::f64)[0], layer(mixed).tables({2, 3}, DType::f64)[0], 0));
  EXPECT_TRUE(names_of(layer({.head_dim = 4})).empty());
  EXPECT_EQ(names_of(layer(mixed)), (Names{"freqs"}));
  EXPECT_EQ(layer(mixed).type(), "RotaryEmbedding");
}

TEST(RotaryEmbedding, ErrorsNameTheLayer) {
  RandomParams params(1);
  EXPECT_ERROR(error_of([&] { RotaryEmbedding({.head_dim = 6}, ParamSource(params)); }), "rotary embedding", "6");
  EXPECT_ERROR(error_of([&] {
                 RotaryEmbedding({.head_dim = 8, .periods = {1, 2, 3}}, ParamSource(params, "rope"));
               }),
               "rope", "3");
}

}  // namespace
}  // namespace vitrail::nn
