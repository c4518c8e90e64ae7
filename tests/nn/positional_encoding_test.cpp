// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/positional_encoding.h"

#include <cmath>

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

class PositionalEncodingGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(PositionalEncodingGolden, EqualsTheReference) {
  const LayerFixture fixture("positional_encoding_" + GetParam());
  const PositionalEncoding layer(fixture.get<int64_t>("dim"), 0, fixture.get<int64_t>("max_len"));
  EXPECT_TRUE(matches(layer.forward(fixture["input"]), fixture["output"]));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, PositionalEncodingGolden, ::testing::Values("8", "24"), name_of_case);

TEST(PositionalEncoding, AlternatesSineAndCosine) {
  const Tensor table = sinusoidal_positions(3, 4);
  const auto at = [&](int64_t i, int64_t j) { return table.data<float>()[i * 4 + j]; };
  EXPECT_EQ(table.shape(), (Shape{1, 3, 4}));
  for (int64_t i = 0; i < 3; ++i) {
    EXPECT_FLOAT_EQ(at(i, 0), std::sin(static_cast<double>(i)));
    EXPECT_FLOAT_EQ(at(i, 1), std::cos(static_cast<double>(i)));
    EXPECT_FLOAT_EQ(at(i, 2), std::sin(static_cast<double>(i) / 100));  // 10000^(2/4) = 100
    EXPECT_FLOAT_EQ(at(i, 3), std::cos(static_cast<double>(i) / 100));
  }
}

// Row 5 of a 2 × 3 grid is the position x = 2, y = 1.  With width 8 the frequencies are 1 and 10000^(−1/2).
TEST(SincosPositions2d, EncodeXInTheFirstHalfAndYInTheSecond) {
  const Tensor table = sincos_positions_2d({2, 3}, 8);
  ASSERT_EQ(table.shape(), (Shape{1, 6, 8}));
  const double expected[] = {std::sin(2.0), std::sin(0.02), std::cos(2.0), std::cos(0.02),
                             std::sin(1.0), std::sin(0.01), std::cos(1.0), std::cos(0.01)};
  for (int64_t i = 0; i < 8; ++i) EXPECT_NEAR(table.data<float>()[5 * 8 + i], expected[i], 1e-7) << i;
  EXPECT_THROW(sincos_positions_2d({2, 3}, 6), Error);
}

TEST(PositionalEncoding, OddWidthsAndLongSequencesAreErrors) {
  EXPECT_THROW(PositionalEncoding(7), Error);
  EXPECT_THROW(PositionalEncoding(8, 1.0), Error);
  const PositionalEncoding layer(8, 0, 10);
  EXPECT_NO_THROW(layer.forward(Tensor::zeros({1, 10, 8})));
  EXPECT_THROW(layer.forward(Tensor::zeros({1, 11, 8})), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({1, 5, 6})), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({5, 8})), Error);
}

TEST(PositionalEncoding, AppliesDropoutInTrainingOnly) {
  PositionalEncoding layer(8, 0.5);
  const Tensor x = Tensor::full({1, 4, 8}, 3);
  EXPECT_TRUE(testing::close(layer.forward(x).select(0, 0).select(0, 0),
                             Tensor::from<float>({8}, {3, 4, 3, 4, 3, 4, 3, 4}), 0));
  layer.train();
  EXPECT_FALSE(testing::close(layer.forward(x), PositionalEncoding(8).forward(x), 1));
}

class Interpolation : public ::testing::TestWithParam<std::string> {};

// Each value is a sum of at most 4·4 (with antialiasing 14·14) products with weights whose absolute values sum to less
// than 2, computed in double, and stored as f32 on both sides: two roundings of 2^-24 of values below 4.
TEST_P(Interpolation, EqualsTheReference) {
  const LayerFixture fixture("position_interpolation_" + GetParam());
  const bool radio = GetParam().starts_with("radio");
  const PositionResampling how{.antialias = fixture.get<bool>("antialias"),
                               .bilinear = radio,
                               .align_corners = radio,
                               .offset = fixture.get<double>("offset")};
  const auto grid = fixture.get<std::array<int64_t, 2>>("grid");
  const auto prefix = fixture.get<int64_t>("prefix");
  for (const auto& target : fixture.get<std::vector<std::array<int64_t, 2>>>("targets")) {
    const std::string name = str("output_", target[0], "x", target[1]);
    EXPECT_TRUE(
        testing::close(resample_positions(fixture["input"], prefix, grid, target, how), fixture[name], 2 * 4 * kStored))
        << name;
    EXPECT_TRUE(testing::close(resample_positions(fixture["input"].to(DType::f64), prefix, grid, target, how),
                               fixture[name], kExact, kStored))
        << name << " in f64";
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Interpolation,
                         ::testing::Values("timm_square", "timm_rectangle", "timm_large", "hf_square", "hf_rectangle",
                                           "hf_large", "dinov2_square", "dinov2_rectangle", "dinov2_large",
                                           "dinov2_antialias_square", "dinov2_antialias_rectangle",
                                           "dinov2_antialias_large", "radio_square", "radio_rectangle", "radio_large"),
                         name_of_case);

TEST(PositionResampling, RejectsAGridThatDoesNotMatchTheTensor) {
  EXPECT_THROW(resample_positions(Tensor::zeros({1, 17, 4}), 1, {4, 5}, {7, 7}, {}), Error);
  EXPECT_THROW(resample_positions(Tensor::zeros({1, 17, 4}), 0, {4, 4}, {7, 7}, {}), Error);
  EXPECT_THROW(resample_positions(Tensor::zeros({1, 17, 4}), 1, {4, 4}, {0, 7}, {}), Error);
  EXPECT_THROW(resample_positions(Tensor::zeros({17, 4}), 1, {4, 4}, {2, 2}, {}), Error);
  EXPECT_ERROR(testing::error_of([] {
                 resample_positions(Tensor::zeros({1, 16, 4}), 0, {4, 4}, {2, 2}, {.align_corners = true});
               }),
               "positions", "antialias");
}

// The gradient of resampled positions is that of a linear map.
TEST(PositionResampling, HasTheGradientsOfItsInterpolation) {
  for (const bool antialias : {false, true}) {
    for (const bool bilinear : {false, true}) {
      for (const auto& to : {std::array<int64_t, 2>{5, 4}, {2, 2}, {3, 7}, {3, 2}}) {
        const PositionResampling how{
            .antialias = antialias, .bilinear = bilinear, .align_corners = bilinear && !antialias};
        const auto check = autograd::check_gradients(
            [&](const std::vector<Tensor>& in) {
              return resample_positions(in[0], 1, {3, 2}, to, how);
            },
            {Tensor::randn({1, 7, 2}, 1, DType::f64)});
        EXPECT_LT(check.worst, 1e-8) << to[0] << "×" << to[1] << ", element " << check.element;
      }
    }
  }
}

// Weights sum to 1, and without the antialiasing filter a linear function stays linear away from the borders.
TEST(PositionResampling, KeepsConstantsAndItsOwnGrid) {
  const Tensor constant = Tensor::full({1, 13, 3}, 2.5);
  for (const bool bilinear : {false, true}) {
    for (const bool antialias : {false, true}) {
      const PositionResampling how{.antialias = antialias, .bilinear = bilinear};
      EXPECT_TRUE(
          testing::close(resample_positions(constant, 1, {3, 4}, {7, 2}, how), Tensor::full({1, 15, 3}, 2.5), 1e-6));
    }
  }
  const Tensor own = Tensor::randn({1, 13, 3}, 1);
  EXPECT_EQ(resample_positions(own, 1, {3, 4}, {3, 4}, {}).storage(), own.storage());
  EXPECT_TRUE(testing::close(resample_positions(own, 1, {3, 4}, {4, 3}, {}).narrow(1, 0, 1), own.narrow(1, 0, 1), 0));
}

TEST(PositionalEncoding, HasADefaultLengthAndKeepsTheDtype) {
  PositionalEncoding layer(4, 0.5, 1000, "pos");
  EXPECT_EQ(PositionalEncoding(4).forward(Tensor::zeros({1, 1000, 4})).shape(), (Shape{1, 1000, 4}));
  EXPECT_ERROR(error_of([] {
                 PositionalEncoding(4).forward(Tensor::zeros({1, 1001, 4}));
               }),
               "PositionalEncoding", "[1, 1001, 4]");
  for (const DType dtype : {DType::f64, DType::bf16}) {
    EXPECT_EQ(layer.forward(Tensor::zeros({1, 2, 4}, dtype)).dtype(), dtype);
  }
  const Values values = traced_by([&] { layer.forward(Tensor::zeros({2, 3, 4})); });
  EXPECT_TRUE(testing::close(values.at("pos.positions"), sinusoidal_positions(3, 4), 0));
  layer.train();
  const RandomScope scope(3, 4);
  const Tensor x = Tensor::randn({2, 3, 4}, 1);
  const Tensor mask = ops::dropout_mask({2, 3, 4}, 0.5, random_key("pos.dropout", 3, 4), {}, DType::f32);
  EXPECT_TRUE(testing::close(layer.forward(x), ops::mul(ops::add(x, sinusoidal_positions(3, 4)), mask), 0));
  EXPECT_ERROR(error_of([] { sinusoidal_positions(3, 5); }), "sinusoidal positions", "5");
  EXPECT_ERROR(error_of([] { sincos_positions_2d({2, 2}, 6); }), "sincos2d positions", "6");
}

TEST(PositionResampling, ErrorsNameGrids) {
  EXPECT_ERROR(error_of([] {
                 resample_positions(Tensor::zeros({1, 17, 4}), 1, {3, 5}, {2, 2}, {});
               }),
               "positions", "[1, 17, 4]");
  EXPECT_ERROR(error_of([] {
                 resample_positions(Tensor::zeros({1, 16, 4}), 1, {3, 5}, {2, 0}, {});
               }),
               "positions", "2×0");
  EXPECT_TRUE(PositionResampling().antialias);
  EXPECT_FALSE(PositionResampling().bilinear);
  EXPECT_EQ(PositionResampling().offset, 0);
}

// A row of values [1, n, 1] resampled to another length, and a column.
void expect_resampled(const std::vector<double>& from, const PositionResampling& how, const std::vector<double>& want) {
  const auto n = static_cast<int64_t>(from.size()), m = static_cast<int64_t>(want.size());
  const Tensor line = Tensor::from<double>({1, n, 1}, from), expected = Tensor::from<double>({1, m, 1}, want);
  EXPECT_TRUE(testing::close(resample_positions(line, 0, {1, n}, {1, m}, how), expected, 1e-12));
  EXPECT_TRUE(testing::close(resample_positions(line, 0, {n, 1}, {m, 1}, how), expected, 1e-12));
}

TEST(PositionResampling, BilinearWeightsAreTriangles) {
  expect_resampled({1, 4}, {.antialias = false, .bilinear = true}, {1, 2.5, 4});
  expect_resampled({1, 4, 10}, {.antialias = false, .bilinear = true}, {1.75, 8.5});
  // Target 0 of 2 from 4: the centre is 1, the triangle 2 wide on each side.
  const double first = (0.75 * 1 + 0.75 * 4 + 0.25 * 10) / 1.75, second = (0.25 * 4 + 0.75 * 10 + 0.75 * 20) / 1.75;
  expect_resampled({1, 4, 10, 20}, {.antialias = true, .bilinear = true}, {first, second});
  expect_resampled({1, 4}, {.antialias = true, .bilinear = true}, {1, 2.5, 4});
  // An offset changes the scale of the positions: 4 / 2.5.
  const double scale = 4 / 2.5, at = 1.5 * scale - 0.5;
  expect_resampled({1, 4, 10, 20}, {.antialias = false, .bilinear = true, .offset = 0.5},
                   {1 + 3 * (0.5 * scale - 0.5), 4 + 6 * (at - 1)});
}

TEST(PositionResampling, BicubicWeightsAreOfTheCubicWithItsParameter) {
  const auto cubic = [](double x, double a) {
    x = std::abs(x);
    return x < 1   ? (a + 2) * x * x * x - (a + 3) * x * x + 1
           : x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a
                   : 0;
  };
  // Target 1 of 4 from 2 is at 0.25; taps outside have the value of the edge.
  const auto plain = [&](double at) {
    double sum = 0;
    for (int i = -2; i <= 3; ++i) sum += cubic(at - i, -0.75) * (i <= 0 ? 1 : 4);
    return sum;
  };
  expect_resampled({1, 4}, {.antialias = false}, {plain(-0.25), plain(0.25), plain(0.75), plain(1.25)});
  // With antialiasing only taps inside count, and their weights are divided by their sum.
  const auto smooth = [&](double at) {
    const double low = cubic(at, -0.5), high = cubic(at - 1, -0.5);
    return (low * 1 + high * 4) / (low + high);
  };
  expect_resampled({1, 4}, {.antialias = true}, {smooth(-0.25), smooth(0.25), smooth(0.75), smooth(1.25)});
}

}  // namespace
}  // namespace vitrail::nn
