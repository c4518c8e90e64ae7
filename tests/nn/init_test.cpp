// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/init.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/golden.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/convolution.h"
#include "vitrail/nn/linear.h"

namespace vitrail::nn::init {
namespace {

struct Statistics {
  double mean = 0, deviation = 0, lowest = 0, highest = 0;
};

constexpr int64_t kDraws = 50000;

Statistics statistics_of(const Initializer& init) {
  Tensor x = Tensor::empty({kDraws}, DType::f64);
  init(x, 7);
  const double* data = x.data<double>();
  Statistics s{.lowest = *std::min_element(data, data + kDraws), .highest = *std::max_element(data, data + kDraws)};
  for (int64_t i = 0; i < kDraws; ++i) s.mean += data[i] / kDraws;
  for (int64_t i = 0; i < kDraws; ++i) s.deviation += (data[i] - s.mean) * (data[i] - s.mean) / kDraws;
  s.deviation = std::sqrt(s.deviation);
  return s;
}

// The mean of n = 5·10^4 draws has the standard deviation σ / √n = 0.0045 σ, and the measured σ at most as much.  The
// tolerance of 2 % is more than four times that.
void expect_mean_zero_and_deviation(const Initializer& init, double deviation) {
  const Statistics s = statistics_of(init);
  EXPECT_NEAR(s.mean, 0, 0.02 * deviation);
  EXPECT_NEAR(s.deviation, deviation, 0.02 * deviation);
}

void expect_uniform(const Initializer& init, double bound) {
  expect_mean_zero_and_deviation(init, bound / std::sqrt(3.0));
  const Statistics s = statistics_of(init);
  EXPECT_GE(s.lowest, -bound);
  EXPECT_LT(s.highest, bound);
  // The draws reach both ends.
  EXPECT_LT(s.lowest, -0.999 * bound);
  EXPECT_GT(s.highest, 0.999 * bound);
}

void expect_constant(const Initializer& init, double value) {
  const Statistics s = statistics_of(init);
  EXPECT_EQ(s.lowest, value);
  EXPECT_EQ(s.highest, value);
}

TEST(Init, Normals) {
  expect_mean_zero_and_deviation(normal(1), 1);
  expect_mean_zero_and_deviation(normal(1e-6), 1e-6);
  expect_mean_zero_and_deviation(truncated_normal(0.02), 0.02);  // torch cuts at ±2, which is a hundred deviations here
  const Statistics wide = statistics_of(truncated_normal(2));
  EXPECT_NEAR(wide.deviation, 2 * 0.5396, 0.02);  // N(0, 1) cut at ±1 has the standard deviation 0.5396
  EXPECT_GE(wide.lowest, -2);
  EXPECT_LE(wide.highest, 2);
}

TEST(Init, LecunNormalHasTheVarianceOfOneOverFanIn) {
  expect_mean_zero_and_deviation(lecun_normal(48), std::sqrt(1.0 / 48));
  const double cut = 2 * std::sqrt(1.0 / 48) / 0.87962566103423978;
  EXPECT_LE(statistics_of(lecun_normal(48)).highest, cut);
  EXPECT_GT(statistics_of(lecun_normal(48)).highest, 0.99 * cut);
}

TEST(Init, Uniforms) {
  expect_uniform(uniform(0.3), 0.3);
  expect_uniform(xavier_uniform(10, 20), std::sqrt(6.0 / 30));
  expect_uniform(torch_default(25), 0.2);  // Kaiming uniform with a = √5: √(6 / (1 + 5) / fan_in)
}

TEST(Init, SchemesPerRole) {
  const int64_t in = 64, out = 192;
  const auto of = [&](Scheme scheme, Role role) { return linear(scheme, role, in, out); };
  const double torch = 1 / 8.0, xavier = std::sqrt(6.0 / 256);
  for (const Role role : {Role::patch, Role::qkv, Role::attn_proj, Role::mlp, Role::head}) {
    expect_uniform(of(Scheme::torch, role).weight, torch);
    expect_uniform(of(Scheme::torch, role).bias, torch);
  }
  for (const Scheme scheme : {Scheme::timm, Scheme::moco, Scheme::xavier}) {  // these keep PyTorch's default for it
    expect_uniform(of(scheme, Role::patch).weight, torch);
    expect_uniform(of(scheme, Role::patch).bias, torch);
  }
  expect_mean_zero_and_deviation(of(Scheme::timm, Role::mlp).weight, 0.02);
  expect_constant(of(Scheme::timm, Role::mlp).bias, 0);

  expect_mean_zero_and_deviation(of(Scheme::jax, Role::patch).weight, 1 / 8.0);
  expect_uniform(of(Scheme::jax, Role::qkv).weight, xavier);
  expect_constant(of(Scheme::jax, Role::qkv).bias, 0);
  expect_mean_zero_and_deviation(of(Scheme::jax, Role::mlp).bias, 1e-6);
  expect_constant(of(Scheme::jax, Role::head).weight, 0);
  expect_constant(of(Scheme::jax, Role::head).bias, 0);
  expect_constant(of(Scheme::jax_nlhb, Role::head).bias, -std::log(192.0));

  expect_uniform(of(Scheme::moco, Role::qkv).weight, std::sqrt(6.0 / (64 + 64)));  // as for three separate matrices
  expect_uniform(of(Scheme::moco, Role::attn_proj).weight, xavier);

  expect_uniform(of(Scheme::xavier, Role::mlp).weight, xavier);  // as Google's ViT code
  expect_mean_zero_and_deviation(of(Scheme::xavier, Role::mlp).bias, 1e-6);
  expect_constant(of(Scheme::xavier, Role::attn_proj).bias, 0);
}

// The largest of n uniform draws is below 0.9 of the bound with probability 0.9^n: 7e-10 for n = 200.  f32 may round a
// draw up to the bound.
void expect_draws_up_to(const Tensor& x, double bound) {
  double largest = 0;
  for (int64_t i = 0; i < x.numel(); ++i) largest = std::max(largest, std::abs(double{x.data<float>()[i]}));
  EXPECT_LE(largest, bound * (1 + 1e-7));
  EXPECT_GT(largest, 0.9 * bound);
}

// 1/√fan_in for weight and bias; fan_in of a transposed convolution is that of its weight's second axis.
TEST(Init, LayersWithoutASchemeHavePyTorchsBounds) {
  RandomParams params(1);
  const Linear linear(4, 200, true, ParamSource(params, "linear"));
  const Conv2d conv({.in_chans = 2, .out_chans = 200, .kernel = 3}, ParamSource(params, "conv"));
  const ConvTranspose2d transposed({.in_chans = 3, .out_chans = 225, .kernel = 2}, ParamSource(params, "transposed"));
  for (const char* name : {"weight", "bias"}) {
    SCOPED_TRACE(name);
    expect_draws_up_to(linear.parameter(name), 1.0 / 2);
    expect_draws_up_to(conv.parameter(name), 1 / std::sqrt(18.0));
    expect_draws_up_to(transposed.parameter(name), 1.0 / 30);
  }
  EXPECT_EQ(Linear(4, 200, false, ParamSource(params, "without")).named_parameters().size(), 1u);
}

TEST(Init, IsReproducibleBySeedAndIndependentOfOrder) {
  const auto block = [](uint64_t seed) {
    RandomParams params(seed);
    return Block({.attention = {.dim = 8, .num_heads = 2}}, ParamSource(params, "blocks.1"));
  };
  const Block first = block(1), again = block(1), other = block(2);
  RandomParams params(1);
  const Linear alone(8, 32, true, ParamSource(params, "blocks.1.mlp.fc1"));  // built without the layers before it
  const Linear sibling(8, 32, true, ParamSource(params, "blocks.2.mlp.fc1"));
  const Tensor weight = first.parameter("mlp.fc1.weight");
  EXPECT_TRUE(testing::close(again.parameter("mlp.fc1.weight"), weight, 0));
  EXPECT_TRUE(testing::close(alone.parameter("weight"), weight, 0));
  EXPECT_FALSE(testing::close(sibling.parameter("weight"), weight, 0));
  EXPECT_FALSE(testing::close(other.parameter("mlp.fc1.weight"), weight, 0));
}

TEST(Init, EveryFloatingDtypeGetsTheSameDraws) {
  Tensor f64 = Tensor::empty({100}, DType::f64), bf16 = Tensor::empty({100}, DType::bf16);
  truncated_normal(0.02)(f64, 3);
  truncated_normal(0.02)(bf16, 3);
  EXPECT_TRUE(testing::close(bf16, f64.to(DType::bf16), 0));
}

// The distribution of an initialiser: constants, or the largest magnitude and the mean square of many draws.
struct Spread {
  double largest = 0, deviation = 0;
};

Spread spread_of(const Initializer& init) {
  Tensor x = Tensor::empty({20000}, DType::f64);
  init(x, 3);
  Spread spread;
  for (int64_t i = 0; i < 20000; ++i) {
    spread.largest = std::max(spread.largest, std::abs(x.data<double>()[i]));
    spread.deviation += x.data<double>()[i] * x.data<double>()[i] / 20000;
  }
  spread.deviation = std::sqrt(spread.deviation);
  return spread;
}

TEST(Init, EverySchemeAndRoleHasItsDistributions) {
  using init::Role;
  using init::Scheme;
  constexpr int64_t kIn = 64, kOut = 192;
  const double torch = 1 / 8.0 / std::sqrt(3.0), xavier = std::sqrt(6.0 / 256) / std::sqrt(3.0);
  struct Case {
    Scheme scheme;
    Role role;
    double weight, bias;  // standard deviations
  };
  std::vector<Case> cases;
  for (const Role role : {Role::patch, Role::qkv, Role::attn_proj, Role::mlp, Role::head}) {
    const bool patch = role == Role::patch, mlp = role == Role::mlp, head = role == Role::head;
    cases.push_back({Scheme::torch, role, torch, torch});
    cases.push_back({Scheme::timm, role, patch ? torch : 0.02, patch ? torch : 0});
    cases.push_back({Scheme::jax, role, patch ? 1 / 8.0 : head ? 0 : xavier, mlp ? 1e-6 : 0});
    cases.push_back({Scheme::jax_nlhb, role,
                     patch  ? 1 / 8.0
                     : head ? 0
                            : xavier,
                     mlp    ? 1e-6
                     : head ? std::log(static_cast<double>(kOut))
                            : 0});
    cases.push_back({Scheme::moco, role,
                     patch               ? torch
                     : role == Role::qkv ? std::sqrt(6.0 / 128) / std::sqrt(3.0)
                                         : xavier,
                     patch ? torch : 0});
    cases.push_back({Scheme::xavier, role, patch ? torch : xavier, patch ? torch : mlp ? 1e-6 : 0});
  }
  for (const Case& one : cases) {
    const init::LinearInit init = init::linear(one.scheme, one.role, kIn, kOut);
    const double weight = spread_of(init.weight).deviation, bias = spread_of(init.bias).deviation;
    EXPECT_NEAR(weight, one.weight, 0.03 * one.weight) << int(one.scheme) << " " << int(one.role);
    EXPECT_NEAR(bias, one.bias, 0.03 * one.bias) << int(one.scheme) << " " << int(one.role);
  }
  EXPECT_LE(spread_of(init::truncated_normal(1.5)).largest, 2);
  EXPECT_GT(spread_of(init::truncated_normal(1.5)).largest, 1.9);
  EXPECT_GT(spread_of(init::normal(1.5)).largest, 4);
}

}  // namespace
}  // namespace vitrail::nn::init
