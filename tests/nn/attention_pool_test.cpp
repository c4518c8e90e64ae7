// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention_pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/dropout.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/softmax.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

AttentionPoolLatent pool(const AttentionPoolConfig& config) {
  RandomParams params(3, DType::f64);
  return AttentionPoolLatent(config, ParamSource(params));
}

// Column range [first, first + count) of head h.
Tensor columns(const Tensor& t, int64_t first, int64_t count) { return t.narrow(-1, first, count).contiguous(); }

// The formula of the header, one sample and head at a time.
Tensor formula(const AttentionPoolLatent& layer, const AttentionPoolConfig& config, const Tensor& x) {
  const auto p = [&](const std::string& name) { return layer.parameter(name); };
  const auto linear = [&](const Tensor& t, const std::string& name) {
    return ops::linear(t, p(name + ".weight"), config.qkv_bias || name == "proj" ? p(name + ".bias") : Tensor());
  };
  const auto norm = [&](const Tensor& t, const std::string& name) {
    return ops::layer_norm(t, p(name + ".weight"), p(name + ".bias"), config.norm_eps);
  };
  const int64_t width = config.out_dim == 0 ? config.dim : config.out_dim, dim = width / config.num_heads;
  Tensor query = p("latent").view({1, width});
  if (config.input_norms) query = norm(query, "q_norm");
  if (config.q_proj) query = linear(query, "q");
  const Tensor result = Tensor::zeros({x.size(0), width}, DType::f64);
  for (int64_t b = 0; b < x.size(0); ++b) {
    const Tensor tokens = config.input_norms ? norm(x.select(0, b), "kv_norm") : x.select(0, b);
    const Tensor kv = linear(tokens, "kv"), attended = Tensor::zeros({1, width}, DType::f64);
    for (int64_t h = 0; h < config.num_heads; ++h) {
      const Tensor q = columns(query, h * dim, dim), k = columns(kv, h * dim, dim),
                   v = columns(kv, width + h * dim, dim);
      const Tensor scale = Tensor::full({1}, 1 / std::sqrt(static_cast<double>(dim)), DType::f64);
      const Tensor weights = ops::softmax(ops::mul(ops::linear(q, k, {}), scale));  // [1, N]
      attended.narrow(1, h * dim, dim).copy_(ops::matmul(weights, v));
    }
    Tensor o = linear(attended, "proj");
    if (config.mlp_hidden.value_or(1) != 0) {
      const Tensor hidden = ops::linear(norm(o, "norm"), p("mlp.fc1.weight"), p("mlp.fc1.bias"), config.activation);
      o = ops::add(o, ops::linear(hidden, p("mlp.fc2.weight"), p("mlp.fc2.bias")));
    }
    result.select(0, b).copy_(o.view({width}));
  }
  return result;
}

TEST(AttentionPool, IsTheFormulaOfItsHeader) {
  for (const AttentionPoolConfig& config :
       {AttentionPoolConfig{.dim = 12, .num_heads = 3}, AttentionPoolConfig{.dim = 12, .num_heads = 1, .mlp_hidden = 7},
        AttentionPoolConfig{.dim = 10, .out_dim = 8, .num_heads = 2, .mlp_hidden = 0, .q_proj = false},
        AttentionPoolConfig{.dim = 6, .out_dim = 12, .num_heads = 4, .mlp_hidden = 0, .input_norms = true},
        AttentionPoolConfig{.dim = 12, .num_heads = 3, .activation = kernels::Activation::relu, .qkv_bias = false}}) {
    const AttentionPoolLatent layer = pool(config);
    const Tensor x = Tensor::randn({3, 5, config.dim}, 2, DType::f64);
    EXPECT_TRUE(testing::close(layer.forward(x), formula(layer, config, x), 1e-12)) << config.out_dim;
  }
}

TEST(AttentionPool, HasTheWidthOfTheTokensByDefault) {
  const AttentionPoolLatent layer = pool({.dim = 16});
  EXPECT_EQ(layer.parameter("latent").shape(), (Shape{1, 1, 16}));
  EXPECT_EQ(layer.parameter("kv.weight").shape(), (Shape{32, 16}));
  EXPECT_EQ(layer.parameter("mlp.fc1.weight").shape(), (Shape{64, 16}));
}

TEST(AttentionPool, RefusesHeadsAndTokensThatDoNotFit) {
  EXPECT_THROW(pool({.dim = 16, .num_heads = 3}), Error);
  EXPECT_THROW(pool({.dim = 16, .num_heads = 0}), Error);
  EXPECT_TRUE(testing::contains(testing::error_of([] { pool({.dim = 16, .out_dim = 9, .num_heads = 2}); }),
                                "width 9 and 2 heads"));
  const AttentionPoolLatent layer = pool({.dim = 16});
  EXPECT_THROW(layer.forward(Tensor::zeros({2, 5, 15}, DType::f64)), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({5, 16}, DType::f64)), Error);
}

TEST_F(Layers, PoolsNameTheirPartsAndWhatDoesNotFit) {
  const AttentionPoolLatent pool({.dim = 6, .out_dim = 8, .num_heads = 2, .mlp_hidden = 5, .input_norms = true},
                                 source("attn_pool"));
  EXPECT_EQ(names_of(pool),
            (Names{"latent", "q_norm.weight", "q_norm.bias", "kv_norm.weight", "kv_norm.bias", "q.weight", "q.bias",
                   "kv.weight", "kv.bias", "proj.weight", "proj.bias", "norm.weight", "norm.bias", "mlp.fc1.weight",
                   "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"}));
  EXPECT_EQ(pool.parameter("q_norm.weight").shape(), (Shape{8}));
  EXPECT_EQ(pool.parameter("kv_norm.weight").shape(), (Shape{6}));
  EXPECT_EQ(pool.parameter("kv.weight").shape(), (Shape{16, 6}));
  EXPECT_EQ(pool.parameter("mlp.fc1.weight").shape(), (Shape{5, 8}));
  EXPECT_EQ(pool.type(), "AttentionPoolLatent");
  EXPECT_ERROR(error_of([&] { pool.forward(Tensor::zeros({2, 5, 8})); }), "attn_pool", "[2, 5, 8]");
  EXPECT_ERROR(error_of([&] { AttentionPoolLatent({.dim = 6, .num_heads = 4}, source()); }), "attention pool",
               "width 6 and 4 heads");
  const Values values = traced_by([&] { pool.forward(Tensor::randn({2, 5, 6}, 1)); });
  EXPECT_EQ(values.at("attn_pool.residual").shape(), (Shape{2, 1, 8}));
  EXPECT_EQ(values.at("attn_pool").shape(), (Shape{2, 8}));
  const AttentionPoolLatent rms({.dim = 6, .num_heads = 2, .norm_layer = NormLayer::rms_norm, .qkv_bias = false},
                                source());
  EXPECT_EQ(names_of(rms), (Names{"latent", "q.weight", "kv.weight", "proj.weight", "proj.bias", "norm.weight",
                                  "mlp.fc1.weight", "mlp.fc1.bias", "mlp.fc2.weight", "mlp.fc2.bias"}));
  EXPECT_EQ(rms.parameter("mlp.fc1.weight").shape(), (Shape{24, 6}));
  const AttentionPoolLatent wide({.dim = 2500, .num_heads = 1, .mlp_hidden = 0, .q_proj = false}, source());
  double square = 0;
  for (int64_t i = 0; i < 2500; ++i) {
    const double value = wide.parameter("latent").data<float>()[i];
    square += value * value;
  }
  EXPECT_NEAR(square, 1, 0.15) << "2500 values of variance 1 / 2500, whose squares sum to 1 ± 0.03";
}

TEST_F(Layers, PoolsDropTheirProjection) {
  AttentionPoolLatent pool({.dim = 6, .num_heads = 2, .mlp_hidden = 0, .proj_drop = 0.5}, source("pool"));
  const Tensor x = Tensor::randn({3, 4, 6}, 1), eval = pool.forward(x);
  pool.train();
  const RandomScope scope(3, 4);
  const Tensor mask = ops::dropout_mask({3, 1, 6}, 0.5, random_key("pool.proj_drop", 3, 4), {}, DType::f32);
  EXPECT_TRUE(testing::close(pool.forward(x), ops::mul(eval, mask.view({3, 6})), 1e-6));
}

}  // namespace
}  // namespace vitrail::nn
