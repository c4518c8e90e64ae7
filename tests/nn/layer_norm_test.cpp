// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/layer_norm.h"

#include "tests/nn/layer_fixture.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/linear.h"

namespace vitrail::nn {
namespace {

class LayerNormGolden : public ::testing::TestWithParam<std::string> {};

// One row has the mean 10 and the standard deviation 0.1.  The rounding error of x − mean is then 10 · 2^-24 / 0.1,
// about 6e-6 of the deviation, in each of a few operations; so the tolerance is three times the usual one.  Another row
// has a deviation near 1e-3, with ε down to 1e-12.
TEST_P(LayerNormGolden, EqualsTheReference) {
  const LayerFixture fixture("layer_norm_eps_" + GetParam());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const LayerNorm layer = build(fixture, dtype, [&](const ParamSource& params) {
      return LayerNorm(fixture.get<int64_t>("features"), fixture.get<double>("eps"), params);
    });
    const Tensor got = layer.forward(fixture["input"].to(dtype));
    if (dtype == DType::f64) {
      EXPECT_TRUE(matches(got, fixture["output"]));
    } else {
      EXPECT_TRUE(testing::close(got, fixture["output"], 3 * kTolerance));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, LayerNormGolden, ::testing::Values("1e12", "1e06", "1e05", "1e03"), name_of_case);

class LayerNorm2dGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(LayerNorm2dGolden, EqualsTheReference) {
  const LayerFixture fixture("layer_norm_2d_eps_" + GetParam());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const LayerNorm2d layer = build(fixture, dtype, [&](const ParamSource& params) {
      return LayerNorm2d(fixture.get<int64_t>("channels"), params, fixture.get<double>("eps"));
    });
    const Tensor got = layer.forward(fixture["input"].to(dtype));
    EXPECT_TRUE(got.is_contiguous());
    EXPECT_TRUE(matches(got, fixture["output"]));
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, LayerNorm2dGolden, ::testing::Values("1e06", "1e02"), name_of_case);

TEST(LayerNorm, RejectsOtherWidths) {
  RandomParams params;
  const LayerNorm norm(8, 1e-6, ParamSource(params));
  EXPECT_THROW(norm.forward(Tensor::zeros({2, 9})), Error);
  const LayerNorm2d norm2d(8, ParamSource(params));
  EXPECT_THROW(norm2d.forward(Tensor::zeros({2, 9, 3, 3})), Error);
  EXPECT_THROW(norm2d.forward(Tensor::zeros({8, 3, 3})), Error);
}

TEST(LayerNorm, TakesAnyLayout) {
  RandomParams params;
  const LayerNorm norm(8, 1e-6, ParamSource(params));
  const Tensor x = Tensor::randn({2, 8, 5}, 1).transpose(1, 2);
  EXPECT_TRUE(testing::close(norm.forward(x), norm.forward(x.contiguous()), 0));
}

TEST(LayerNorm, PassesGradientsToALinearLayer) {
  RandomParams params(1, DType::f64);
  Linear linear(4, 6, true, ParamSource(params, "linear"));
  LayerNorm norm(6, 1e-6, ParamSource(params, "norm"));
  linear.requires_grad(true);
  norm.requires_grad(true);
  const Tensor out = norm.forward(linear.forward(Tensor::randn({3, 4}, 1, DType::f64)));
  autograd::backward(out, Tensor::full(out.shape(), 1, DType::f64));
  EXPECT_TRUE(testing::close(autograd::grad_of(norm.parameter("bias")), Tensor::full({6}, 3), 0));
  EXPECT_EQ(autograd::grad_of(linear.parameter("weight")).shape(), (Shape{6, 4}));
}

}  // namespace
}  // namespace vitrail::nn
