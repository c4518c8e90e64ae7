// SPDX-License-Identifier: Apache-2.0
#include "vitrail/ops/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/ops/inputs.h"
#include "tests/support/golden.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/elementwise.h"

namespace vitrail::ops {
namespace {

using kernels::Activation;

// Vector kernels have an error of a few units in the last place, for values below 8.
TEST(Activation, InFloatEqualsDouble) {
  using kernels::Activation;
  const Tensor x = mul(Tensor::randn({1000}, 1, DType::f64), Tensor::full({1}, 2, DType::f64)).to(DType::f32);
  for (const Activation kind : {Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::quick_gelu,
                                Activation::relu, Activation::silu, Activation::tanh}) {
    EXPECT_TRUE(testing::close(activation(x, kind), activation(x.to(DType::f64), kind), 2e-6)) << name_of(kind);
  }
  EXPECT_EQ(activation(Tensor::zeros({2, 0}), Activation::gelu).shape(), (Shape{2, 0}));
}

TEST(SiluGate, MultipliesTheSecondHalfByTheFirst) {
  const Tensor x = Tensor::randn({3, 2, 10}, 1, DType::f64);
  const Tensor expected = mul(activation(x.narrow(2, 0, 5), kernels::Activation::silu), x.narrow(2, 5, 5));
  EXPECT_TRUE(testing::close(silu_gate(x), expected, 0));
  EXPECT_TRUE(testing::close(silu_gate(x.to(DType::f32)), expected, 2e-6));
  EXPECT_THROW(silu_gate(Tensor::zeros({2, 3})), Error);
  EXPECT_EQ(silu_gate(Tensor::zeros({2, 0})).shape(), (Shape{2, 0}));
}

// PyTorch's choice where the slope is not defined.
TEST(Activation, ReluHasTheSlopeZeroAtZero) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Tensor x = Tensor::from<double>({4}, {-1, -0.0, 0, 1}).to(dtype);
    autograd::set_requires_grad(x, true);
    autograd::backward(activation(x, kernels::Activation::relu), Tensor::full({4}, 3, dtype));
    EXPECT_TRUE(testing::close(autograd::grad_of(x), Tensor::from<double>({4}, {0, 0, 0, 3}), 0)) << name_of(dtype);
  }
}

TEST(Activation, ValuesAreThoseOfTheirFormulas) {
  const double points[] = {-3, -0.75, -0.0, 0.5, 2};
  for (const double x : points) {
    const double cube = x + 0.044715 * x * x * x;
    const std::pair<Activation, double> values[] = {
        {Activation::none, x},
        {Activation::gelu, x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)))},
        {Activation::gelu_tanh, 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * cube))},
        {Activation::quick_gelu, x / (1 + std::exp(-1.702 * x))},
        {Activation::relu, std::max(x, 0.0)},
        {Activation::silu, x / (1 + std::exp(-x))},
        {Activation::tanh, std::tanh(x)}};
    for (const auto& [kind, want] : values) {
      EXPECT_NEAR(activation(Tensor::full({1}, x, DType::f64), kind).item<double>(), want, 1e-14) << name_of(kind);
      EXPECT_NEAR(activation(Tensor::full({1}, x), kind).item<double>(), want, 1e-6) << name_of(kind);
    }
  }
}

TEST(Activation, OfNoneGivesTheGradientItself) {
  const Tensor grad = draw({3}, 1);
  EXPECT_EQ(activation_backward(Activation::none, {}, grad).storage(), grad.storage());
}

}  // namespace
}  // namespace vitrail::ops
