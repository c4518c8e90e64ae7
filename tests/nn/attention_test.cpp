// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention.h"

#include "tests/nn/layer_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/ops/layer_norm.h"
#include "vitrail/ops/linear.h"

namespace vitrail::nn {
namespace {

AttentionConfig attention_config_of(const LayerFixture& fixture, const std::string& name) {
  return {.dim = fixture.get<int64_t>("dim"),
          .num_heads = fixture.get<int64_t>("num_heads"),
          .head_dim = fixture.optional<int64_t>("head_dim"),
          .qkv_bias = fixture.get<bool>("qkv_bias"),
          .qk_scale = fixture.optional<double>("qk_scale"),
          .qk_norm = fixture.optional<bool>("qk_norm").value_or(false),
          .norm_eps = fixture.optional<double>("norm_eps").value_or(1e-6),
          .split = name == "split"};
}

class AttentionGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(AttentionGolden, EqualsTheReference) {
  const LayerFixture fixture("attention_" + GetParam());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Attention layer = build(fixture, dtype, [&](const ParamSource& params) {
      return Attention(attention_config_of(fixture, GetParam()), params);
    });
    const Tensor x = fixture["input"].to(dtype);
    const AttentionOutput result = layer.forward(x, {.need_weights = true});
    EXPECT_TRUE(matches(result.out, fixture["output"]));
    EXPECT_TRUE(matches(result.weights, fixture["output_weights"]));
    EXPECT_TRUE(matches(layer.forward(x), fixture["output"])) << "without weights";
    EXPECT_FALSE(layer.forward(x, {}).weights.defined());
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, AttentionGolden,
                         ::testing::Values("plain", "qkv_bias", "qk_scale", "qk_norm", "head_dim", "one_head", "wide",
                                           "single_token", "split"),
                         name_of_case);

Attention random_attention(const AttentionConfig& config) {
  RandomParams params(3);
  return Attention(config, ParamSource(params));
}

TEST(Attention, SplitAndFusedParametersGiveTheSameOutput) {
  const LayerFixture fixture("attention_split");
  const Attention split = build(fixture, DType::f32, [&](const ParamSource& params) {
    return Attention(attention_config_of(fixture, "split"), params);
  });
  testing::Golden fused;  // qkv is query, key and value, stacked
  for (const char* part : {"weight", "bias"}) {
    const Tensor& q = fixture[std::string("query.") + part];
    const int64_t rows = q.size(0);
    Shape shape = q.shape();
    shape[0] = 3 * rows;
    const Tensor stacked = Tensor::empty(shape);
    stacked.narrow(0, 0, rows).copy_(q);
    stacked.narrow(0, rows, rows).copy_(fixture[std::string("key.") + part]);
    stacked.narrow(0, 2 * rows, rows).copy_(fixture[std::string("value.") + part]);
    fused.tensors[std::string("qkv.") + part] = stacked;
    fused.tensors[std::string("proj.") + part] = fixture[std::string("out.") + part];
  }
  testing::GoldenParams params(fused);
  AttentionConfig config = attention_config_of(fixture, "split");
  config.split = false;
  const Attention layer(config, ParamSource(params));
  EXPECT_TRUE(testing::close(layer.forward(fixture["input"]), split.forward(fixture["input"]), 1e-6));
}

TEST(Attention, ThrowsAnErrorThatNamesWidthAndHeadsIfTheyDoNotMatch) {
  try {
    random_attention({.dim = 20, .num_heads = 3});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("width 20 and 3 heads"), std::string::npos) << error.what();
  }
  EXPECT_EQ(random_attention({.dim = 20, .num_heads = 3, .head_dim = 4}).parameter("qkv.weight").shape(),
            (Shape{36, 20}));
  EXPECT_THROW(random_attention({.dim = 20, .num_heads = 0}), Error);
  EXPECT_THROW(random_attention({.dim = 20, .num_heads = -2}), Error);
  EXPECT_THROW(random_attention({.dim = 20, .num_heads = 2, .head_dim = 0}), Error);
}

TEST(Attention, RejectsOtherShapes) {
  const Attention layer = random_attention({.dim = 24, .num_heads = 3});
  EXPECT_THROW(layer.forward(Tensor::zeros({2, 5, 23})), Error);
  EXPECT_THROW(layer.forward(Tensor::zeros({5, 24})), Error);
  EXPECT_EQ(layer.forward(Tensor::zeros({0, 5, 24})).shape(), (Shape{0, 5, 24}));
}

TEST(Attention, ReturnedWeightsAreThoseBeforeDropout) {
  Attention layer = random_attention({.dim = 24, .num_heads = 3, .attn_drop = 0.5, .proj_drop = 0.5});
  const Tensor x = Tensor::randn({2, 7, 24}, 1);
  const AttentionOutput eval = layer.forward(x, {.need_weights = true});
  layer.train();
  const RandomScope scope(1, 2);
  const AttentionOutput train = layer.forward(x, {.need_weights = true});
  EXPECT_TRUE(testing::close(train.weights, eval.weights, 1e-6));
  EXPECT_FALSE(testing::close(train.out, eval.out, 1e-3));
}

// Only the first queries are computed, for all keys and with the rows of the bias that are theirs.
TEST(Attention, TheFirstQueriesHaveTheirRowsOfAllQueries) {
  for (const bool rel_pos : {false, true}) {
    AttentionConfig config{.dim = 24, .num_heads = 3, .qkv_bias = true};
    if (rel_pos) config.rel_pos_grid = {2, 3};
    const Attention layer = random_attention(config);
    if (rel_pos) layer.parameter("relative_position_bias_table").copy_(Tensor::randn({3 * 5 + 3, 3}, 4));
    const Tensor x = Tensor::randn({2, 7, 24}, 1);
    for (const Shape& shape : {Shape{}, Shape{2, 1, 1, 7}, Shape{1, 3, 7, 7}}) {
      AttentionOptions options{.need_weights = true, .need_keys = true, .grid = {2, 3}};
      if (shape.rank() > 0) options.bias = Tensor::randn(shape, 2);
      const AttentionOutput all = layer.forward(x, options);
      EXPECT_EQ(all.weights.shape(), (Shape{2, 3, 7, 7}));
      EXPECT_EQ(all.keys.shape(), (Shape{2, 3, 7, 8}));
      for (const int64_t queries : {1, 2, 7}) {
        options.num_queries = queries;
        const AttentionOutput some = layer.forward(x, options);
        EXPECT_TRUE(testing::close(some.out, all.out.narrow(1, 0, queries), 1e-6)) << shape << " " << queries;
        EXPECT_TRUE(testing::close(some.weights, all.weights.narrow(2, 0, queries), 1e-6)) << shape << " " << queries;
        EXPECT_TRUE(testing::close(some.keys, all.keys, 0));
      }
    }
  }
}

TEST(Attention, AnAblatedHeadNeedsAllQueries) {
  const Attention layer = random_attention({.dim = 24, .num_heads = 3});
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  EXPECT_FALSE(testing::close(layer.forward(x, {.ablated_head = 2}).out, layer.forward(x), 1e-3));
  EXPECT_ERROR(testing::error_of([&] { layer.forward(x, {.ablated_head = 3}); }), "ablated_head", "3");
  EXPECT_ERROR(testing::error_of([&] { layer.forward(x, {.ablated_head = -1}); }), "ablated_head", "-1");
  EXPECT_ERROR(testing::error_of([&] { layer.forward(x, {.num_queries = 1, .ablated_head = 0}); }), "ablated_head",
               "num_queries 1");
}

TEST(Attention, KeysAreThoseBehindTheirNorm) {
  const Attention layer = random_attention({.dim = 24, .num_heads = 3, .qk_norm = true});
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  const Tensor weight = layer.parameter("qkv.weight").narrow(0, 24, 24);
  const Tensor keys = split_heads(ops::linear(x, weight.contiguous(), {}), 3).contiguous();
  EXPECT_TRUE(testing::close(layer.forward(x, {.need_keys = true}).keys, ops::layer_norm(keys, {}, {}, 1e-6), 1e-5));
  EXPECT_FALSE(layer.forward(x, {}).keys.defined());
  EXPECT_FALSE(layer.forward(x, {}).weights.defined());
}

TEST(Attention, RotaryPositionsNeedAFusedProjectionWithoutNorms) {
  const Tensor x = Tensor::zeros({1, 4, 24}), table = Tensor::zeros({1, 1, 4, 8});
  EXPECT_NO_THROW(random_attention({.dim = 24, .num_heads = 3}).forward(x, {.rotary = table}));
  EXPECT_THROW(random_attention({.dim = 24, .num_heads = 3, .split = true}).forward(x, {.rotary = table}), Error);
  EXPECT_THROW(random_attention({.dim = 24, .num_heads = 3, .qk_norm = true}).forward(x, {.rotary = table}), Error);
}

}  // namespace
}  // namespace vitrail::nn
