// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/attention.h"

#include "tests/nn/layer_fixture.h"
#include "vitrail/base/error.h"

namespace vitrail::nn {
namespace {

AttentionConfig config_of(const LayerFixture& fixture, const std::string& name) {
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
    const Attention layer = build(
        fixture, dtype, [&](const ParamSource& params) { return Attention(config_of(fixture, GetParam()), params); });
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
  const Attention split = build(
      fixture, DType::f32, [&](const ParamSource& params) { return Attention(config_of(fixture, "split"), params); });
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
  AttentionConfig config = config_of(fixture, "split");
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

}  // namespace
}  // namespace vitrail::nn
