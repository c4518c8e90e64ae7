// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/block.h"

#include "tests/nn/layer_fixture.h"

namespace vitrail::nn {
namespace {

BlockConfig block_config_of(const LayerFixture& fixture) {
  const auto dim = fixture.get<int64_t>("dim");
  const double ratio = fixture.optional<double>("mlp_ratio").value_or(4);
  BlockConfig config;
  config.attention = {.dim = dim,
                      .num_heads = fixture.get<int64_t>("num_heads"),
                      .qkv_bias = fixture.get<bool>("qkv_bias"),
                      .qk_norm = fixture.optional<bool>("qk_norm").value_or(false),
                      .norm_eps = fixture.get<double>("norm_eps")};
  config.mlp_hidden =
      fixture.optional<int64_t>("mlp_hidden").value_or(static_cast<int64_t>(static_cast<double>(dim) * ratio));
  config.norm_eps = fixture.get<double>("norm_eps");
  config.norm_first = fixture.get<bool>("norm_first");
  config.init_values = fixture.optional<double>("init_values");
  return config;
}

class BlockGolden : public ::testing::TestWithParam<std::string> {};

TEST_P(BlockGolden, EqualsTheReference) {
  const LayerFixture fixture("block_" + GetParam());
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Block layer =
        build(fixture, dtype, [&](const ParamSource& params) { return Block(block_config_of(fixture), params); });
    const Tensor x = fixture["input"].to(dtype);
    EXPECT_TRUE(matches(layer.forward(x), fixture["output"]));
    AttentionOutput attention;
    const Tensor y = layer.attend(x, {.need_weights = true}, &attention);
    EXPECT_TRUE(matches(layer.feed_forward(y), fixture["output"])) << "with weights";
    EXPECT_EQ(attention.weights.shape(), (Shape{2, 3, 9, 9}));
    const Tensor first = layer.feed_forward(layer.attend(x, {.num_queries = 2}));
    EXPECT_TRUE(matches(first, fixture["output"].narrow(1, 0, 2).contiguous())) << "the first two tokens only";
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, BlockGolden,
                         ::testing::Values("pre_norm", "layer_scale", "mlp_ratio", "qk_norm", "post_norm",
                                           "post_norm_layer_scale", "eps", "post_norm_eps", "torch_post_norm"),
                         name_of_case);

TEST(Block, StochasticDepthDropsOrScalesABranchPerSample) {
  RandomParams params(1);
  BlockConfig config{.attention = {.dim = 8, .num_heads = 2}, .drop_path = 0.5};
  Block layer(config, ParamSource(params, "block"));
  const Tensor x = Tensor::randn({64, 3, 8}, 1);
  const Tensor eval = layer.forward(x);
  EXPECT_FALSE(testing::close(eval, x, 1e-3));
  layer.train();
  const RandomScope scope(5, 7);
  const Tensor train = layer.forward(x);
  int unchanged = 0;  // samples with both branches dropped: probability 1/4
  for (int64_t b = 0; b < 64; ++b) unchanged += bool(testing::close(train.select(0, b), x.select(0, b), 0));
  EXPECT_GE(unchanged, 4);  // mean 16, standard deviation 3.5
  EXPECT_LE(unchanged, 28);
  EXPECT_TRUE(testing::close(layer.forward(x), train, 0)) << "the same seed and step give the same draws";
}

TEST(Block, SwigluReplacesTheMlp) {
  RandomParams params(1);
  const Block layer({.attention = {.dim = 8, .num_heads = 2}, .mlp_hidden = 12, .swiglu = true}, ParamSource(params));
  EXPECT_EQ(layer.parameter("mlp.fc1.weight").shape(), (Shape{24, 8}));
  EXPECT_EQ(layer.forward(Tensor::randn({1, 3, 8}, 1)).shape(), (Shape{1, 3, 8}));
}

TEST(Block, TheFirstQueriesHaveTheirRowsOfAllTokens) {
  for (const auto& [norm_first, res_post_norm] : {std::pair{true, false}, {false, false}, {true, true}}) {
    RandomParams params(1);
    const Block block({.attention = {.dim = 24, .num_heads = 3},
                       .norm_first = norm_first,
                       .res_post_norm = res_post_norm,
                       .init_values = 0.5},
                      ParamSource(params, "blocks.0"));
    const Tensor x = Tensor::randn({2, 7, 24}, 1), all = block.forward(x);
    for (const int64_t queries : {1, 3}) {
      const Tensor some = block.feed_forward(block.attend(x, {.num_queries = queries}, nullptr));
      EXPECT_TRUE(testing::close(some, all.narrow(1, 0, queries), 1e-6)) << queries;
    }
  }
}

}  // namespace
}  // namespace vitrail::nn
