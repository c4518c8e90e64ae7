// SPDX-License-Identifier: Apache-2.0
// Attention and blocks with each option, against their formulas in operations of double.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/random.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/token_merging.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/residual_add.h"
#include "vitrail/ops/rms_norm.h"
#include "vitrail/ops/rotary.h"
#include "vitrail/ops/softmax.h"
#include "vitrail/ops/token_merging.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

// A layer whose parameters are all random: zeros and ones would hide where they go.
template <class Layer, class Config>
Layer randomised(const Config& config, const std::string& path = "") {
  RandomParams params(1, DType::f64);
  Layer layer(config, ParamSource(params, path));
  uint64_t seed = 10;
  for (const NamedTensor& p : layer.named_parameters())
    p.tensor.copy_(ops::mul(Tensor::randn(p.tensor.shape(), ++seed, DType::f64), Tensor::full({1}, 0.7, DType::f64)));
  return layer;
}

Tensor scaled(const Tensor& x, double factor) { return ops::mul(x, Tensor::full({1}, factor, DType::f64)); }

Tensor optional(const Module& layer, const std::string& name) {
  for (const NamedTensor& p : layer.named_parameters()) {
    if (p.name == name) return p.tensor;
  }
  return {};
}

Tensor normed(const Module& layer, const std::string& name, const Tensor& x, double eps, NormLayer kind) {
  const Tensor rows = x.contiguous(), gamma = layer.parameter(name + ".weight");
  return kind == NormLayer::rms_norm ? ops::rms_norm(rows, gamma, eps)
                                     : ops::layer_norm(rows, gamma, layer.parameter(name + ".bias"), eps);
}

struct Parts {
  Tensor out, weights, keys;
};

// prefix: of the attention's parameters in `layer`.
Parts formula(const Module& layer, const std::string& prefix, const AttentionConfig& config, const Tensor& x,
              const AttentionOptions& options) {
  const int64_t heads = config.num_heads, dim = config.head_dim.value_or(config.dim / heads), inner = heads * dim;
  const auto at = [&](const std::string& name) { return optional(layer, prefix + name); };
  const auto part = [&](int64_t i) {
    const char* const own[] = {"query", "key", "value"};
    Tensor bias = config.split ? at(std::string(own[i]) + ".bias") : at("qkv.bias");
    const Tensor weight =
        config.split ? at(std::string(own[i]) + ".weight") : at("qkv.weight").narrow(0, i * inner, inner);
    if (!config.split && bias.defined()) bias = bias.narrow(0, i * inner, inner).contiguous();
    if (i == 0 && at("q_bias").defined()) bias = at("q_bias");
    if (i == 2 && at("v_bias").defined()) bias = at("v_bias");
    return ops::linear(x, weight.contiguous(), bias);
  };
  Tensor qkv = ops::cat({part(0), part(1), part(2)}, 2);
  if (options.rotary.defined()) qkv = ops::rotary(qkv, options.rotary, heads, config.rotary_pairs);
  const Tensor split = qkv.view({x.size(0), x.size(1), 3, heads, dim}).permute({2, 0, 3, 1, 4});
  Tensor q = split.select(0, 0).contiguous(), k = split.select(0, 1).contiguous(), v = split.select(0, 2).contiguous();
  if (config.qk_norm) {
    q = normed(layer, prefix + "q_norm", q, config.norm_eps, config.norm_layer);
    k = normed(layer, prefix + "k_norm", k, config.norm_eps, config.norm_layer);
  }
  Tensor scores =
      scaled(ops::matmul(q, k.transpose(2, 3)), config.qk_scale.value_or(1 / std::sqrt(static_cast<double>(dim))));
  if (options.bias.defined()) scores = ops::add(scores, options.bias);
  if (config.rel_pos_grid) {
    RandomParams none(0, DType::f64);
    RelativePositionBias relative({*config.rel_pos_grid, heads, config.rel_pos_resampling}, ParamSource(none));
    relative.parameter("relative_position_bias_table").copy_(at("relative_position_bias_table"));
    scores = ops::add(scores, relative.forward(options.grid));
  }
  const Tensor weights = ops::softmax(scores);
  Tensor out = ops::matmul(weights, v).permute({0, 2, 1, 3}).contiguous().view({x.size(0), x.size(1), inner});
  if (config.scale_norm) out = normed(layer, prefix + "norm", out, config.norm_eps, NormLayer::layer_norm);
  const std::string proj = config.split ? "out" : "proj";
  return {ops::linear(out, at(proj + ".weight"), at(proj + ".bias")), weights, k};
}

std::vector<AttentionConfig> attentions() {
  return {
      {.dim = 12, .num_heads = 3},
      {.dim = 12, .num_heads = 3, .qkv_bias = true, .k_bias = false},
      {.dim = 12, .num_heads = 3, .qkv_bias = false, .k_bias = false, .proj_bias = false},
      {.dim = 12, .num_heads = 2, .head_dim = 4, .qkv_bias = true, .qk_scale = 0.9},
      {.dim = 12, .num_heads = 3, .qkv_bias = true, .qk_norm = true, .norm_eps = 0.2},
      {.dim = 12, .num_heads = 3, .qk_norm = true, .norm_eps = 0.2, .norm_layer = NormLayer::rms_norm},
      {.dim = 12,
       .num_heads = 2,
       .head_dim = 4,
       .scale_norm = true,
       .norm_eps = 0.3,
       .norm_layer = NormLayer::rms_norm},
      {.dim = 12, .num_heads = 3, .qkv_bias = true, .k_bias = false, .rel_pos_grid = {{2, 2}}},
      {.dim = 12, .num_heads = 3, .rel_pos_grid = {{3, 2}}, .rel_pos_resampling = RelativePositionResampling::bilinear},
      {.dim = 12, .num_heads = 2, .head_dim = 4, .qkv_bias = true, .proj_bias = false, .split = true}};
}

TEST(Attention, IsItsFormulaWithEveryOption) {
  const Tensor x = Tensor::randn({2, 5, 12}, 1, DType::f64);
  for (const AttentionConfig& config : attentions()) {
    const auto layer = randomised<Attention>(config);
    for (const Tensor& bias :
         {Tensor(), Tensor::randn({2, 1, 1, 5}, 3, DType::f64), Tensor::randn({1, 1, 5, 5}, 4, DType::f64)}) {
      AttentionOptions options{.bias = bias, .grid = {2, 2}};
      const Parts want = formula(layer, "", config, x, options);
      EXPECT_TRUE(testing::close(layer.forward(x, options).out, want.out, 1e-12)) << names_of(layer)[0];
      options.need_weights = options.need_keys = true;
      const AttentionOutput got = layer.forward(x, options);
      EXPECT_TRUE(testing::close(got.out, want.out, 1e-12));
      EXPECT_TRUE(testing::close(got.weights, want.weights, 1e-12));
      EXPECT_TRUE(testing::close(got.keys, want.keys, 1e-12));
      EXPECT_FALSE(layer.forward(x, {.need_weights = true, .grid = {2, 2}}).keys.defined());
      EXPECT_FALSE(layer.forward(x, {.need_keys = true, .grid = {2, 2}}).weights.defined());
      Tensor traced;
      {
        const TraceScope scope([](const std::string&, const Tensor&) {});
        traced = layer.forward(x, options).out;
      }
      EXPECT_TRUE(testing::close(traced, want.out, 1e-12));
    }
  }
}

TEST(Attention, RotatesQueriesAndKeysByItsPairs) {
  const Tensor x = Tensor::randn({2, 5, 12}, 1, DType::f64);
  const Tensor table = ops::rotary_table(Tensor::randn({1, 1, 4, 3}, 2, DType::f64));
  for (const ops::RotaryPairs pairs : {ops::RotaryPairs::halves, ops::RotaryPairs::interleaved}) {
    const AttentionConfig config{.dim = 12, .num_heads = 2, .qkv_bias = true, .k_bias = false, .rotary_pairs = pairs};
    const auto layer = randomised<Attention>(config);
    for (const bool weights : {false, true}) {
      const AttentionOptions options{.need_weights = weights, .rotary = table};
      EXPECT_TRUE(testing::close(layer.forward(x, options).out, formula(layer, "", config, x, options).out, 1e-12));
    }
  }
}

TEST(Attention, ParametersAreThoseOfItsOptions) {
  const auto names = [](const AttentionConfig& config) { return names_of(randomised<Attention>(config)); };
  EXPECT_EQ(names({.dim = 12, .num_heads = 3}), (Names{"qkv.weight", "proj.weight", "proj.bias"}));
  EXPECT_EQ(names({.dim = 12,
                   .num_heads = 3,
                   .qkv_bias = true,
                   .k_bias = false,
                   .qk_norm = true,
                   .scale_norm = true,
                   .proj_bias = false,
                   .rel_pos_grid = {{2, 3}}}),
            (Names{"q_bias", "v_bias", "qkv.weight", "relative_position_bias_table", "q_norm.weight", "q_norm.bias",
                   "k_norm.weight", "k_norm.bias", "norm.weight", "norm.bias", "proj.weight"}));
  EXPECT_EQ(names({.dim = 12, .num_heads = 3, .k_bias = false}), (Names{"qkv.weight", "proj.weight", "proj.bias"}));
  EXPECT_EQ(names({.dim = 12, .num_heads = 3, .qkv_bias = true, .split = true}),
            (Names{"query.weight", "query.bias", "key.weight", "key.bias", "value.weight", "value.bias", "out.weight",
                   "out.bias"}));
  RandomParams params(1);
  const Attention fresh({.dim = 12,
                         .num_heads = 2,
                         .head_dim = 4,
                         .qkv_bias = true,
                         .k_bias = false,
                         .scale_norm = true,
                         .rel_pos_grid = {{2, 3}}},
                        ParamSource(params));
  EXPECT_TRUE(testing::close(fresh.parameter("q_bias"), Tensor::zeros({8}), 0));
  EXPECT_TRUE(testing::close(fresh.parameter("v_bias"), Tensor::zeros({8}), 0));
  EXPECT_EQ(fresh.parameter("norm.weight").shape(), (Shape{8}));
  EXPECT_EQ(fresh.parameter("proj.weight").shape(), (Shape{12, 8}));
  EXPECT_EQ(fresh.parameter("relative_position_bias_table").shape(), (Shape{3 * 5 + 3, 2}));
}

TEST(Attention, ErrorsNameTheLayerAndWhatItNeeds) {
  const auto built = [](const AttentionConfig& config, const std::string& path) {
    return testing::error_of([&] {
      RandomParams params;
      Attention(config, ParamSource(params, path));
    });
  };
  EXPECT_ERROR(built({.dim = 12, .num_heads = 0}, ""), "attention", "0");
  EXPECT_ERROR(built({.dim = 12, .num_heads = 2, .head_dim = 0}, "blocks.1.attn"), "blocks.1.attn", "0");
  EXPECT_ERROR(built({.dim = 20, .num_heads = 3}, "blocks.1.attn"), "blocks.1.attn", "width 20 and 3 heads");
  const auto layer = randomised<Attention>(AttentionConfig{.dim = 12, .num_heads = 3}, "blocks.1.attn");
  EXPECT_ERROR(testing::error_of([&] {
                 layer.forward(Tensor::zeros({2, 5, 13}, DType::f64));
               }),
               "blocks.1.attn", "[2, 5, 13]");
  const Tensor x = Tensor::zeros({1, 4, 12}, DType::f64), table = Tensor::zeros({1, 1, 4, 4}, DType::f64);
  const auto rotate = [&](AttentionConfig config) {
    const auto rotating = randomised<Attention>(config, "attn");
    return testing::error_of([&] { rotating.forward(x, {.rotary = table}); });
  };
  EXPECT_ERROR(rotate({.dim = 12, .num_heads = 3, .split = true}), "attn", "split");
  EXPECT_ERROR(rotate({.dim = 12, .num_heads = 3, .qk_norm = true}), "attn", "qk_norm");
}

TEST(Attention, TracesANormOnlyOfTheNamesThatItLacks) {
  for (const bool norms : {false, true}) {
    const auto layer = randomised<Attention>(
        AttentionConfig{.dim = 12, .num_heads = 3, .qk_norm = norms, .scale_norm = norms}, "attn");
    std::map<std::string, Tensor> values;
    {
      const TraceScope scope([&](const std::string& name, const Tensor& value) { values[name] = value; });
      layer.forward(Tensor::randn({1, 4, 12}, 1, DType::f64));
    }
    for (const char* name : {"attn.q_norm", "attn.k_norm", "attn.norm"}) ASSERT_TRUE(values.contains(name)) << name;
    EXPECT_TRUE(testing::close(values["attn.q_norm"], values["attn.q"], 0));
    EXPECT_TRUE(testing::close(values["attn.k_norm"], values["attn.k"], 0));
    EXPECT_EQ(bool(testing::close(values["attn.norm"], values["attn.merged"], 1e-9)), !norms);
  }
}

TEST(Attention, TracesQueriesAndKeysBeforeRotationUnderTheNamesOfTheNorms) {
  const auto layer = randomised<Attention>(AttentionConfig{.dim = 12, .num_heads = 3}, "attn");
  const Tensor table = ops::rotary_table(Tensor::randn({1, 1, 4, 2}, 2, DType::f64));
  Names order;
  std::map<std::string, Tensor> values;
  {
    const TraceScope scope([&](const std::string& name, const Tensor& value) {
      order.push_back(name);
      values[name] = value;
    });
    layer.forward(Tensor::randn({1, 4, 12}, 1, DType::f64), {.rotary = table});
  }
  const Tensor heads = values["attn.qkv"].view({1, 4, 3, 3, 4}).permute({2, 0, 3, 1, 4});
  EXPECT_TRUE(testing::close(values["attn.q_norm"], heads.select(0, 0), 0));
  EXPECT_TRUE(testing::close(values["attn.k_norm"], heads.select(0, 1), 0));
  EXPECT_FALSE(testing::close(values["attn.q"], heads.select(0, 0), 1e-3));
  EXPECT_EQ(order, (Names{"attn.qkv", "attn.qkv_reshaped", "attn.qkv_permuted", "attn.q_norm", "attn.k_norm", "attn.q",
                          "attn.k", "attn.v", "attn.k_transposed", "attn.scores", "attn.weights", "attn.attn_drop",
                          "attn.context", "attn.merged", "attn.norm", "attn.proj", "attn.proj_drop", "attn"}));
}

TEST(Attention, DropsWeightsAndOutputsUnderTheirOwnNames) {
  RandomParams params(1);
  Attention layer({.dim = 12, .num_heads = 3, .attn_drop = 0.5}, ParamSource(params, "attn"));
  Attention projected({.dim = 12, .num_heads = 3, .proj_drop = 0.5}, ParamSource(params, "attn"));
  const Tensor x = Tensor::randn({2, 5, 12}, 1), eval = layer.forward(x);
  layer.train();
  projected.train();
  const RandomScope scope(3, 4);
  EXPECT_FALSE(testing::close(layer.forward(x), eval, 1e-3));
  const Tensor mask = ops::dropout_mask({2, 5, 12}, 0.5, random_key("attn.proj_drop", 3, 4), {}, DType::f32);
  EXPECT_TRUE(testing::close(projected.forward(x), ops::mul(eval, mask), 1e-6));
  // Weights are dropped before they are multiplied with the values.
  const Tensor qkv = ops::linear(x, layer.parameter("qkv.weight"), {}).view({2, 5, 3, 3, 4}).permute({2, 0, 3, 1, 4});
  const auto part = [&](int64_t i) { return qkv.select(0, i).contiguous(); };
  const Tensor weights = ops::softmax(ops::mul(ops::matmul(part(0), part(1).transpose(2, 3)), Tensor::full({1}, 0.5)));
  const Tensor drop = ops::dropout_mask({2, 3, 5, 5}, 0.5, random_key("attn.attn_drop", 3, 4), {}, DType::f32);
  const Tensor context =
      ops::matmul(ops::mul(weights, drop), part(2)).permute({0, 2, 1, 3}).contiguous().view({2, 5, 12});
  const Tensor want = ops::linear(context, layer.parameter("proj.weight"), layer.parameter("proj.bias"));
  EXPECT_TRUE(testing::close(layer.forward(x), want, 1e-5));
}

TEST(SplitHeads, GivesEachHeadItsColumns) {
  const Tensor x = Tensor::randn({2, 3, 8}, 1), heads = split_heads(x, 4);
  EXPECT_EQ(heads.shape(), (Shape{2, 4, 3, 2}));
  EXPECT_EQ(heads.storage(), x.storage());
  EXPECT_TRUE(testing::close(heads.select(1, 3), x.narrow(2, 6, 2), 0));
}

// The block's formulas, in f64.
Tensor block_formula(const Block& block, const BlockConfig& config, const Tensor& x) {
  const NormLayer kind = config.attention.norm_layer;
  const auto at = [&](const std::string& name) { return optional(block, name); };
  const auto norm = [&](const char* name, const Tensor& t) { return normed(block, name, t, config.norm_eps, kind); };
  const auto attend = [&](const Tensor& t) { return formula(block, "attn.", config.attention, t, {}).out; };
  const auto mlp = [&](const Tensor& t) {
    Tensor hidden = ops::linear(t, at("mlp.fc1.weight"), at("mlp.fc1.bias"));
    if (config.swiglu) {
      const int64_t half = hidden.size(2) / 2;
      hidden = ops::mul(ops::activation(hidden.narrow(2, 0, half).contiguous(), kernels::Activation::silu),
                        hidden.narrow(2, half, half));
    } else {
      hidden = ops::activation(hidden, config.activation);
    }
    if (config.scale_mlp) hidden = normed(block, "mlp.norm", hidden, config.norm_eps, NormLayer::layer_norm);
    return ops::linear(hidden, at("mlp.fc2.weight"), at("mlp.fc2.bias"));
  };
  const auto plus = [&](const Tensor& to, const Tensor& branch, const char* scale) {
    return ops::add(to, at(scale).defined() ? ops::mul(branch, at(scale)) : branch);
  };
  if (config.res_post_norm) {
    const Tensor y = plus(x, norm("norm1", attend(x)), "ls1.gamma");
    return plus(y, norm("norm2", mlp(y)), "ls2.gamma");
  }
  if (config.norm_first) {
    const Tensor y = plus(x, attend(norm("norm1", x)), "ls1.gamma");
    return plus(y, mlp(norm("norm2", y)), "ls2.gamma");
  }
  const Tensor y = norm("norm1", plus(x, attend(x), "ls1.gamma"));
  return norm("norm2", plus(y, mlp(y), "ls2.gamma"));
}

TEST(Block, IsItsFormulaWithEveryOption) {
  const AttentionConfig plain{.dim = 12, .num_heads = 3, .qkv_bias = true, .norm_eps = 0.4};
  AttentionConfig rms = plain, bare = plain;
  rms.norm_layer = NormLayer::rms_norm;
  rms.qk_norm = true;
  bare.proj_bias = false;
  const Tensor x = Tensor::randn({2, 5, 12}, 1, DType::f64);
  for (const BlockConfig& config :
       {BlockConfig{.attention = plain, .norm_eps = 0.2},
        BlockConfig{.attention = plain, .mlp_hidden = 7, .activation = kernels::Activation::relu, .norm_eps = 0.2},
        BlockConfig{.attention = plain, .mlp_hidden = 6, .swiglu = true, .norm_eps = 0.2},
        BlockConfig{.attention = bare, .mlp_hidden = 6, .swiglu = true, .scale_mlp = true, .norm_eps = 0.2},
        BlockConfig{.attention = rms, .scale_mlp = true, .norm_eps = 0.2},
        BlockConfig{.attention = bare, .norm_eps = 0.2, .norm_first = false, .init_values = 0.5},
        BlockConfig{.attention = plain, .norm_eps = 0.2, .norm_first = true, .res_post_norm = true},
        BlockConfig{
            .attention = rms, .norm_eps = 0.2, .norm_first = false, .res_post_norm = true, .init_values = 0.5}}) {
    const auto block = randomised<Block>(config);
    const Tensor want = block_formula(block, config, x);
    EXPECT_TRUE(testing::close(block.forward(x), want, 1e-12)) << config.norm_first << config.res_post_norm;
    const TraceScope scope([](const std::string&, const Tensor&) {});
    EXPECT_TRUE(testing::close(block.forward(x), want, 1e-12)) << "traced";
  }
}

TEST(Block, ParametersAreThoseOfItsOptions) {
  RandomParams params(1);
  const ParamSource source(params);
  const Block plain({.attention = {.dim = 8, .num_heads = 2}}, source);
  EXPECT_EQ(plain.parameter("mlp.fc1.weight").shape(), (Shape{32, 8})) << "four times the width";
  EXPECT_EQ(Block({.attention = {.dim = 8, .num_heads = 2}, .mlp_hidden = 5}, source).parameter("mlp.fc1.bias").shape(),
            (Shape{5}));
  const Block block({.attention = {.dim = 8, .num_heads = 2, .norm_layer = NormLayer::rms_norm, .proj_bias = false},
                     .mlp_hidden = 6,
                     .swiglu = true,
                     .scale_mlp = true,
                     .init_values = 0.25},
                    source);
  EXPECT_EQ(names_of(block),
            (Names{"norm1.weight", "attn.qkv.weight", "attn.proj.weight", "ls1.gamma", "norm2.weight", "mlp.fc1.weight",
                   "mlp.norm.weight", "mlp.norm.bias", "mlp.fc2.weight", "ls2.gamma"}));
  EXPECT_TRUE(testing::close(block.parameter("ls1.gamma"), Tensor::full({8}, 0.25), 0));
  EXPECT_TRUE(testing::close(block.parameter("ls2.gamma"), Tensor::full({8}, 0.25), 0));
}

// Both branches draw under their own names.
TEST(Block, DropsPathsAndHiddenFeaturesUnderTheirNames) {
  RandomParams params(1);
  Block block({.attention = {.dim = 8, .num_heads = 2}, .drop_path = 0.5}, ParamSource(params, "blocks.0"));
  Block mlp({.attention = {.dim = 8, .num_heads = 2}, .mlp_drop = 0.5}, ParamSource(params, "blocks.0"));
  const Tensor x = Tensor::randn({4, 3, 8}, 1);
  const Tensor attended = block.attend(x), fed = block.feed_forward(x);
  block.train();
  mlp.train();
  const RandomScope scope(3, 4);
  const auto keep = [](const char* name) {
    return ops::dropout_mask({4}, 0.5, random_key(name, 3, 4), {}, DType::f64).view({4, 1, 1}).to(DType::f32);
  };
  const auto branch = [&](const Tensor& sum) { return ops::add(sum, ops::mul(x, Tensor::full({1}, -1))); };
  EXPECT_TRUE(
      testing::close(block.attend(x), ops::add(x, ops::mul(branch(attended), keep("blocks.0.drop_path1"))), 1e-5));
  EXPECT_TRUE(
      testing::close(block.feed_forward(x), ops::add(x, ops::mul(branch(fed), keep("blocks.0.drop_path2"))), 1e-5));
  EXPECT_TRUE(testing::close(mlp.attend(x), attended, 1e-6));
  EXPECT_FALSE(testing::close(mlp.feed_forward(x), fed, 1e-3));
}

// Merging after the attention of each block; from then on scores have the logarithms of the sizes.
TEST(TokenMerging, OfTwoBlocksIsTheFormula) {
  RandomParams params(1);
  const Block first({.attention = {.dim = 8, .num_heads = 2}}, ParamSource(params, "a"));
  const Block second({.attention = {.dim = 8, .num_heads = 2}}, ParamSource(params, "b"));
  const Tensor x = Tensor::randn({2, 11, 8}, 1);
  TokenMerging merging(2, 1);
  const Tensor got = merging.forward(second, merging.forward(first, x));
  AttentionOutput output;
  const Tensor y = first.attend(x, {.need_keys = true}, &output);
  const ops::MergedTokens once = ops::merge_tokens(y, output.keys, {}, 2, 1);
  const Tensor middle = first.feed_forward(once.x);
  const Tensor z = second.attend(middle, {.need_keys = true, .bias = once.log_sizes.view({2, 1, 1, 9})}, &output);
  const ops::MergedTokens twice = ops::merge_tokens(z, output.keys, once.sizes, 2, 1);
  EXPECT_TRUE(testing::close(got, second.feed_forward(twice.x), 1e-6));
  EXPECT_TRUE(testing::close(merging.shares(), ops::mul(twice.sizes, Tensor::full({1}, 0.1)), 1e-7));
  // The last block of few queries attends with the sizes and merges nothing.
  const Tensor few = merging.forward(first, got, 1);
  EXPECT_EQ(few.shape(), (Shape{2, 1, 8}));
  const Tensor bias = twice.log_sizes.view({2, 1, 1, 7});
  EXPECT_TRUE(testing::close(few, first.feed_forward(first.attend(got, {.bias = bias, .num_queries = 1})), 1e-6));
  EXPECT_EQ(merging.shares().shape(), (Shape{2, 7}));
}

}  // namespace
}  // namespace vitrail::nn
