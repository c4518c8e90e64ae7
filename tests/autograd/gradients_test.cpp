// SPDX-License-Identifier: Apache-2.0
// The backward of linear, layer_norm and residual_add, against central differences and PyTorch's autograd, in f64.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/support/paths.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/autograd/gradient_check.h"
#include "vitrail/autograd/variable.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"

namespace vitrail::autograd {
namespace {

using kernels::Activation;

Tensor draw(const Shape& shape, uint64_t seed) { return Tensor::randn(shape, seed, DType::f64); }

// A central difference with step h = 1e-5 has the truncation error h²/6 · f''' ≈ 2e-11 and the rounding error
// ε · |f| / h ≈ 1e-16 · 30 / 1e-5 = 3e-10, for sums f of some dozens of values of order 1.  The tolerance is 1e-8; a
// wrong term causes an error of 1e-2 or more.
void expect_correct_gradients(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs) {
  const GradientCheck check = check_gradients(function, inputs);
  EXPECT_LT(check.worst, 1e-8) << "input " << check.input << ", element " << check.element << ": numerical "
                               << check.numerical << ", analytic " << check.analytic;
}

class LinearGradient : public ::testing::TestWithParam<Activation> {};

TEST_P(LinearGradient, EqualsCentralDifferences) {
  const Activation act = GetParam();
  const Tensor x = draw({2, 3, 5}, 1), weight = draw({4, 5}, 2), bias = draw({4}, 3);
  expect_correct_gradients([&](const std::vector<Tensor>& in) { return ops::linear(in[0], in[1], in[2], act); },
                           {x, weight, bias});
  expect_correct_gradients([&](const std::vector<Tensor>& in) { return ops::linear(in[0], in[1], {}, act); },
                           {x, weight});
}

TEST_P(LinearGradient, EqualsPyTorchs) {
  const testing::Golden golden = testing::read_golden(
      testing::fixture(std::string("layers/grad_linear_") + kernels::name_of(GetParam()) + ".safetensors"));
  Tensor x = golden["x"], weight = golden["weight"], bias = golden["bias"];
  for (Tensor* leaf : {&x, &weight, &bias}) set_requires_grad(*leaf, true);
  const Tensor out = ops::linear(x, weight, bias, GetParam());
  EXPECT_TRUE(testing::close(out, golden["output"], 1e-12));
  backward(out, golden["grad_output"]);
  EXPECT_TRUE(testing::close(grad_of(x), golden["grad_x"], 1e-12));
  EXPECT_TRUE(testing::close(grad_of(weight), golden["grad_weight"], 1e-12));
  EXPECT_TRUE(testing::close(grad_of(bias), golden["grad_bias"], 1e-12));
}

INSTANTIATE_TEST_SUITE_P(Activations, LinearGradient,
                         ::testing::Values(Activation::none, Activation::gelu, Activation::gelu_tanh,
                                           Activation::quick_gelu, Activation::relu, Activation::silu),
                         [](const auto& info) { return std::string(kernels::name_of(info.param)); });

TEST(LinearGradientOf, NoBias) {
  const testing::Golden golden = testing::read_golden(testing::fixture("layers/grad_linear_no_bias.safetensors"));
  Tensor x = golden["x"], weight = golden["weight"];
  set_requires_grad(x, true);
  set_requires_grad(weight, true);
  backward(ops::linear(x, weight, {}), golden["grad_output"]);
  EXPECT_TRUE(testing::close(grad_of(x), golden["grad_x"], 1e-12));
  EXPECT_TRUE(testing::close(grad_of(weight), golden["grad_weight"], 1e-12));
}

TEST(LinearGradientOf, Tanh) {
  expect_correct_gradients(
      [](const std::vector<Tensor>& in) { return ops::linear(in[0], in[1], in[2], Activation::tanh); },
      {draw({3, 5}, 1), draw({4, 5}, 2), draw({4}, 3)});
}

TEST(LinearGradientOf, AStridedInput) {
  expect_correct_gradients(
      [](const std::vector<Tensor>& in) {
        return ops::linear(draw({5, 3}, 1).transpose(0, 1), in[0], in[1]);
      },
      {draw({4, 5}, 2), draw({4}, 3)});
}

TEST(LayerNormGradient, EqualsCentralDifferences) {
  const Tensor x = draw({3, 2, 6}, 1), gamma = draw({6}, 2), beta = draw({6}, 3);
  using In = const std::vector<Tensor>&;
  for (const double eps : {1e-6, 1e-1}) {
    expect_correct_gradients([&](In in) { return ops::layer_norm(in[0], in[1], in[2], eps); }, {x, gamma, beta});
    expect_correct_gradients([&](In in) { return ops::layer_norm(in[0], in[1], {}, eps); }, {x, gamma});
    expect_correct_gradients([&](In in) { return ops::layer_norm(in[0], {}, in[1], eps); }, {x, beta});
    expect_correct_gradients([&](In in) { return ops::layer_norm(in[0], {}, {}, eps); }, {x});
  }
}

TEST(LayerNormGradient, EqualsPyTorchs) {
  for (const std::string eps : {"1e06", "1e02"}) {
    const testing::Golden golden =
        testing::read_golden(testing::fixture("layers/grad_layer_norm_eps_" + eps + ".safetensors"));
    Tensor x = golden["x"], weight = golden["weight"], bias = golden["bias"];
    for (Tensor* leaf : {&x, &weight, &bias}) set_requires_grad(*leaf, true);
    const Tensor out = ops::layer_norm(x, weight, bias, nlohmann::json::parse(golden.config).at("eps").get<double>());
    EXPECT_TRUE(testing::close(out, golden["output"], 1e-12));
    backward(out, golden["grad_output"]);
    EXPECT_TRUE(testing::close(grad_of(x), golden["grad_x"], 1e-12));
    EXPECT_TRUE(testing::close(grad_of(weight), golden["grad_weight"], 1e-12));
    EXPECT_TRUE(testing::close(grad_of(bias), golden["grad_bias"], 1e-12));
  }
}

TEST(ResidualAddGradient, EqualsCentralDifferences) {
  const Tensor x = draw({3, 2, 4}, 1), y = draw({3, 2, 4}, 2), scale = draw({4}, 3);
  const Tensor keep = Tensor::from<double>({3}, {0, 1.25, 1.25});
  using In = const std::vector<Tensor>&;
  expect_correct_gradients([&](In in) { return ops::residual_add(in[0], in[1]); }, {x, y});
  expect_correct_gradients([&](In in) { return ops::residual_add(in[0], in[1], in[2]); }, {x, y, scale});
  expect_correct_gradients([&](In in) { return ops::residual_add(in[0], in[1], {}, keep); }, {x, y});
  expect_correct_gradients([&](In in) { return ops::residual_add(in[0], in[1], in[2], keep); }, {x, y, scale});
}

TEST(ResidualAddGradient, EqualsPyTorchs) {
  for (const bool scaled : {false, true}) {
    const testing::Golden golden = testing::read_golden(
        testing::fixture(std::string("layers/grad_residual_add") + (scaled ? "_scale" : "") + ".safetensors"));
    Tensor x = golden["x"], y = golden["y"], scale = scaled ? golden["scale"] : Tensor();
    set_requires_grad(x, true);
    set_requires_grad(y, true);
    if (scaled) set_requires_grad(scale, true);
    const Tensor out = ops::residual_add(x, y, scale);
    EXPECT_TRUE(testing::close(out, golden["output"], 1e-12));
    backward(out, golden["grad_output"]);
    EXPECT_TRUE(testing::close(grad_of(x), golden["grad_x"], 1e-12));
    EXPECT_TRUE(testing::close(grad_of(y), golden["grad_y"], 1e-12));
    if (scaled) {
      EXPECT_TRUE(testing::close(grad_of(scale), golden["grad_scale"], 1e-12));
    }
  }
}

// layer_norm(x + γ · linear(x)): every kind of node in one graph, f32 against f64.
TEST(Gradient, OfAResidualBranchInFloatEqualsDouble) {
  std::map<DType, std::vector<Tensor>> grads;
  for (const DType dtype : {DType::f64, DType::f32}) {
    std::vector<Tensor> leaves{draw({3, 8}, 1).to(dtype), draw({8, 8}, 2).to(dtype), draw({8}, 3).to(dtype),
                               draw({8}, 4).to(dtype)};
    for (Tensor& leaf : leaves) set_requires_grad(leaf, true);
    const Tensor branch = ops::linear(leaves[0], leaves[1], leaves[2], Activation::gelu);
    backward(ops::layer_norm(ops::residual_add(leaves[0], branch, leaves[3]), leaves[3], leaves[2], 1e-6),
             draw({3, 8}, 5).to(dtype));
    for (const Tensor& leaf : leaves) grads[dtype].push_back(grad_of(leaf));
  }
  // Dot products of at most 24 terms of order 1 to 10 have an error of at most 24 · 10 · 2^-24 = 1.4e-5.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(grads[DType::f32][i].dtype(), DType::f32);
    EXPECT_TRUE(testing::close(grads[DType::f32][i], grads[DType::f64][i], 2e-5)) << i;
  }
}

}  // namespace
}  // namespace vitrail::autograd
