// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/layer_norm.h"

#include "tests/nn/layer_fixture.h"
#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/linear.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/rms_norm.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

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

TEST_F(Layers, RmsNormHasAWeightAlone) {
  const LayerNorm rms(4, 0.5, source("norm"), NormLayer::rms_norm), plain(4, 0.5, source("norm"));
  EXPECT_EQ(names_of(rms), (Names{"weight"}));
  EXPECT_EQ(names_of(plain), (Names{"weight", "bias"}));
  EXPECT_EQ(rms.to_string(), "RmsNorm((4,), eps=0.5, elementwise_affine=True)");
  for (const LayerNorm* norm : {&rms, &plain})
    EXPECT_TRUE(testing::close(norm->parameter("weight"), Tensor::full({4}, 1), 0));
  EXPECT_TRUE(testing::close(plain.parameter("bias"), Tensor::zeros({4}), 0));
  const Tensor gamma = Tensor::randn({4}, 2), beta = Tensor::randn({4}, 3), x = Tensor::randn({2, 3, 4}, 1);
  rms.parameter("weight").copy_(gamma);
  plain.parameter("weight").copy_(gamma);
  plain.parameter("bias").copy_(beta);
  EXPECT_TRUE(testing::close(rms.forward(x), ops::rms_norm(x, gamma, 0.5), 0));
  EXPECT_TRUE(testing::close(plain.forward(x), ops::layer_norm(x, gamma, beta, 0.5), 0));
  EXPECT_TRUE(traced_by([&] { rms.forward(x); }).contains("norm"));
}

TEST_F(Layers, LayerNorm2dIsOverTheChannels) {
  const LayerNorm2d norm(3, source("norm"));
  EXPECT_EQ(norm.to_string(), "LayerNorm2d()");
  EXPECT_EQ(names_of(norm), (Names{"weight", "bias"}));
  const Tensor x = ops::mul(Tensor::randn({2, 3, 2, 4}, 1), Tensor::full({1}, 1e-3));  // where ε matters
  const Tensor want = ops::layer_norm(x.permute({0, 2, 3, 1}), {}, {}, 1e-6).permute({0, 3, 1, 2});
  EXPECT_TRUE(testing::close(norm.forward(x), want, 1e-5));
  EXPECT_ERROR(error_of([&] { norm.forward(Tensor::zeros({2, 4, 3, 3})); }), "LayerNorm2d", "[2, 4, 3, 3]");
}

}  // namespace
}  // namespace vitrail::nn
