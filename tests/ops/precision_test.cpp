// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/precision.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"

namespace vitrail::ops {
namespace {

// Rounded to bf16, as f64.
Tensor rounded(const Tensor& t) { return t.to(DType::bf16).to(DType::f64); }

TEST(MixedPrecision, RoundsTheOperandsOfALinearLayerAndItsResult) {
  const Tensor x = Tensor::randn({5, 37}, 1), weight = Tensor::randn({11, 37}, 2), bias = Tensor::randn({11}, 3);
  const MixedPrecision scope(DType::bf16);
  const Tensor y = linear(x, weight, bias);
  EXPECT_EQ(y.dtype(), DType::bf16);
  // Half a unit in the last place of bf16's 8 bits, for results below 32.
  EXPECT_TRUE(testing::close(y, linear(rounded(x), rounded(weight), bias.to(DType::f64)), 32 * std::pow(2, -9)));
}

TEST(MixedPrecision, GradientsOfWeightsAreFloat) {
  Tensor x = Tensor::randn({64, 37}, 1), weight = Tensor::randn({11, 37}, 2);
  autograd::set_requires_grad(x, true);
  autograd::set_requires_grad(weight, true);
  const Tensor grad = Tensor::randn({64, 11}, 4).to(DType::bf16);
  Tensor y;
  {
    const MixedPrecision scope(DType::bf16);
    y = linear(x, weight, {});
  }
  autograd::backward(y, grad);  // the backward pass has the precision of the forward pass, also outside of the scope
  EXPECT_EQ(autograd::grad_of(weight).dtype(), DType::f32);
  const Tensor exact = matmul(grad.to(DType::f64).transpose(0, 1), rounded(x));
  EXPECT_TRUE(testing::close(autograd::grad_of(weight), exact, 64 * 16 * std::pow(2, -24)));
}

// A parameter between the tokens of a layer: its gradient passes from bf16 through other operations.
TEST(MixedPrecision, GradientsOfLeavesHaveTheirDtype) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Tensor token = Tensor::randn({1, 37}, 1).to(dtype);
    autograd::set_requires_grad(token, true);
    autograd::backward(token.expand({2, 37}), Tensor::full({2, 37}, 0.5).to(DType::bf16));
    ASSERT_EQ(autograd::grad_of(token).dtype(), dtype);
    EXPECT_EQ(autograd::grad_of(token).to(DType::f32).data<float>()[36], 1.0f);
  }
}

// More rows than a block of the backward pass has, and a remainder.
TEST(MixedPrecision, GradientsOfBiasesAreSumsOverAllRows) {
  using kernels::Activation;
  for (const int64_t rows : {1, 431, 432, 2000}) {
    for (const Activation kind : {Activation::none, Activation::gelu}) {
      for (const DType grad_dtype : {DType::bf16, DType::f32}) {
        Tensor x = Tensor::randn({rows, 5}, 1), weight = Tensor::randn({37, 5}, 2), bias = Tensor::randn({37}, 3);
        const Tensor grad = Tensor::randn({rows, 37}, 4).to(DType::bf16);
        std::vector<Tensor> exact{rounded(x), rounded(weight), bias.to(DType::f64)};
        for (Tensor& leaf : exact) autograd::set_requires_grad(leaf, true);
        autograd::backward(linear(exact[0], exact[1], exact[2], kind), grad.to(DType::f64));
        for (Tensor* const leaf : {&x, &weight, &bias}) autograd::set_requires_grad(*leaf, true);
        const MixedPrecision scope(DType::bf16);
        autograd::backward(linear(x, weight, bias, kind), grad.to(grad_dtype));
        // The value before the activation is rounded to 2^-9 of itself, which changes slopes by as much; the errors of
        // the rows add up as a random walk.
        const double tolerance = 0.02 * std::sqrt(static_cast<double>(rows));
        EXPECT_TRUE(testing::close(autograd::grad_of(bias), autograd::grad_of(exact[2]), tolerance)) << rows;
        EXPECT_TRUE(testing::close(autograd::grad_of(weight), autograd::grad_of(exact[1]), 3 * tolerance)) << rows;
        EXPECT_TRUE(testing::close(autograd::grad_of(x), autograd::grad_of(exact[0]), 0.2)) << rows;
      }
    }
  }
}

TEST(MixedPrecision, EmptyLayersHaveGradients) {
  const MixedPrecision scope(DType::bf16);
  for (const auto& [rows, in, out] : {std::array<int64_t, 3>{0, 3, 4}, {2, 0, 4}, {2, 3, 0}}) {
    Tensor x = Tensor::randn({rows, in}, 1), weight = Tensor::randn({out, in}, 2), bias = Tensor::randn({out}, 3);
    for (Tensor* const t : {&x, &weight, &bias}) autograd::set_requires_grad(*t, true);
    const Tensor y = linear(x, weight, bias);
    EXPECT_EQ(y.shape(), (Shape{rows, out}));
    autograd::backward(y, Tensor::full({rows, out}, 1.0f).to(y.dtype()));
    for (const Tensor* const t : {&x, &weight, &bias}) EXPECT_EQ(autograd::grad_of(*t).shape(), t->shape());
    for (int64_t c = 0; c < out; ++c) {
      EXPECT_EQ(autograd::grad_of(bias).data<float>()[c], static_cast<float>(rows)) << rows << " " << in;
    }
  }
}

TEST(MixedPrecision, DoesNotChangeDoubleAndOtherOperations) {
  const MixedPrecision scope(DType::bf16);
  const Tensor x = Tensor::randn({5, 37}, 1);
  EXPECT_EQ(layer_norm(x, {}, {}, 1e-6).dtype(), DType::f32);
  EXPECT_EQ(linear(x.to(DType::f64), Tensor::randn({4, 37}, 2, DType::f64), {}).dtype(), DType::f64);
}

TEST(MixedPrecision, EndsWithItsScope) {
  {
    const MixedPrecision outer(DType::bf16);
    { const MixedPrecision inner(DType::f32); }
    EXPECT_EQ(MixedPrecision::current(), DType::bf16);
  }
  EXPECT_EQ(MixedPrecision::current(), DType::f32);
  EXPECT_THROW(MixedPrecision{DType::f16}, Error);
}

}  // namespace
}  // namespace vitrail::ops
