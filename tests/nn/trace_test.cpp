// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/trace.h"

#include <cmath>

#include "tests/nn/traced_layers.h"
#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/ops/activation.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

using testing::error_of;

TEST(Trace, PatchEmbedReportsTheFeatureMapAndTheTokens) {
  RandomParams params(1);
  const PatchEmbed layer({.img_size = {8, 12}, .patch_size = {4, 4}, .embed_dim = 5},
                         ParamSource(params, "patch_embed"));
  const Tensor image = Tensor::randn({2, 3, 8, 12}, 1);
  const Values values = traced_by([&] { layer.forward(image); });
  const Tensor map = values.at("patch_embed.proj");
  EXPECT_EQ(map.shape(), (Shape{2, 5, 2, 3}));
  EXPECT_TRUE(testing::close(values.at("patch_embed.flattened"), map.flatten(2), 0));
  EXPECT_TRUE(testing::close(values.at("patch_embed.transposed"), map.flatten(2).transpose(1, 2), 0));
  EXPECT_TRUE(testing::close(values.at("patch_embed"), layer.forward(image), 0));
}

TEST(Trace, AttentionReportsEveryStepOfTheFormula) {
  RandomParams params(1);
  const Attention layer({.dim = 24, .num_heads = 3, .qkv_bias = true}, ParamSource(params, "attn"));
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  Tensor out;
  const Values values = traced_by([&] { out = layer.forward(x); });
  const auto at = [&](const std::string& name) { return values.at("attn." + name); };
  EXPECT_TRUE(testing::close(at("qkv_reshaped"), at("qkv").view({2, 5, 3, 3, 8}), 0));
  EXPECT_TRUE(testing::close(at("qkv_permuted"), at("qkv_reshaped").permute({2, 0, 3, 1, 4}), 0));
  for (const char* name : {"q", "k", "v", "context"}) EXPECT_EQ(at(name).shape(), (Shape{2, 3, 5, 8})) << name;
  EXPECT_TRUE(testing::close(at("k"), at("qkv_permuted").select(0, 1), 0));
  EXPECT_TRUE(testing::close(at("k_transposed"), at("k").transpose(2, 3), 0));
  EXPECT_EQ(at("k_transposed").shape(), (Shape{2, 3, 8, 5}));
  // Each step follows from the one before.  A dot product of 8 terms of order 1 has an error of at most 8 · 2^-24.
  const Tensor product = ops::matmul(at("q"), at("k_transposed"));
  EXPECT_TRUE(testing::close(at("scores"), ops::mul(product, Tensor::full({1}, 1 / std::sqrt(8.0))), 1e-6));
  EXPECT_TRUE(
      testing::close(ops::mul(ops::mean(at("weights"), 3), Tensor::full({1}, 5)), Tensor::full({2, 3, 5}, 1), 1e-6));
  EXPECT_TRUE(testing::close(at("context"), ops::matmul(at("weights"), at("v")), 1e-6));
  EXPECT_TRUE(testing::close(at("merged"), at("context").transpose(1, 2).reshape({2, 5, 24}), 0));
  EXPECT_TRUE(testing::close(at("proj"), out, 0));
  EXPECT_TRUE(testing::close(values.at("attn"), out, 0));
}

TEST(Trace, MlpReportsTheValuesBeforeAndAfterTheActivation) {
  RandomParams params(1);
  const Mlp layer({.in_features = 6, .hidden_features = 10}, ParamSource(params, "mlp"));
  const Tensor x = Tensor::randn({3, 6}, 1);
  const Values values = traced_by([&] { layer.forward(x); });
  const Tensor fc1 = ops::linear(x, layer.parameter("fc1.weight"), layer.parameter("fc1.bias"));
  EXPECT_TRUE(testing::close(values.at("mlp.fc1"), fc1, 0));
  EXPECT_TRUE(testing::close(values.at("mlp.act"), ops::activation(fc1, kernels::Activation::gelu), 0));
  EXPECT_TRUE(testing::close(values.at("mlp"), layer.forward(x), 1e-6));
}

TEST(Trace, BlockReportsBothSumsAndEveryStepOfAResidualBranch) {
  RandomParams params(1);
  for (const bool norm_first : {true, false}) {
    const Block block({.attention = {.dim = 24, .num_heads = 3}, .norm_first = norm_first, .init_values = 0.1},
                      ParamSource(params, "blocks.0"));
    const Tensor x = Tensor::randn({2, 9, 24}, 1);
    const Values values = traced_by([&] { block.forward(x); });
    const auto at = [&](const std::string& name) { return values.at("blocks.0." + name); };
    EXPECT_TRUE(testing::close(at("ls1"), ops::mul(at("attn"), block.parameter("ls1.gamma")), 0));
    EXPECT_TRUE(testing::close(at("drop_path1"), at("ls1"), 0));
    EXPECT_TRUE(testing::close(at("residual1"), ops::add(x, at("ls1")), 0));
    const Tensor y = norm_first ? at("residual1") : at("norm1");
    EXPECT_TRUE(testing::close(at("residual2"), ops::add(y, at("ls2")), 0));
    EXPECT_TRUE(testing::close(values.at("blocks.0"), at(norm_first ? "residual2" : "norm2"), 0));
  }
}

TEST(Trace, StochasticDepthKeepsOrDropsTheBranchOfASample) {
  RandomParams params(1);
  Block block({.attention = {.dim = 24, .num_heads = 3}, .drop_path = 0.5}, ParamSource(params, "blocks.0"));
  block.train();
  const RandomScope random(1, 0);
  const Tensor x = Tensor::randn({8, 3, 24}, 1);
  Tensor out;
  const Values values = traced_by([&] { out = block.forward(x); });
  EXPECT_TRUE(testing::close(out, block.forward(x), 1e-5));
  EXPECT_TRUE(testing::close(values.at("blocks.0.residual1"), ops::add(x, values.at("blocks.0.drop_path1")), 0));
}

TEST(Trace, TracedAndUntracedForwardsAgree) {
  RandomParams params(1);
  const Block block({.attention = {.dim = 24, .num_heads = 3}, .init_values = 0.1}, ParamSource(params, "blocks.0"));
  const MultiheadAttention cross({.embed_dim = 24, .num_heads = 3}, ParamSource(params, "cross"));
  const Tensor x = Tensor::randn({2, 9, 24}, 1), memory = Tensor::randn({2, 7, 24}, 2);
  const Tensor mask = Tensor::zeros({9, 7}, DType::boolean);  // the fourth query sees no key, the others some
  for (int64_t i = 0; i < mask.numel(); ++i) mask.data<bool>()[i] = i / 7 != 3 && i % 3 != 0;
  Tensor block_out;
  MultiheadAttentionOutput cross_out;
  const Values values = traced_by([&] {
    block_out = block.forward(x);
    cross_out = cross.forward(x, memory, memory, {.attn_mask = mask});
  });
  // The fused attention sums in another order.
  EXPECT_TRUE(testing::close(block_out, block.forward(x), 1e-6));
  const MultiheadAttentionOutput expected = cross.forward(x, memory, memory, {.attn_mask = mask});
  EXPECT_TRUE(testing::close(cross_out.out, expected.out, 1e-6));
  EXPECT_TRUE(testing::close(cross_out.weights, expected.weights, 1e-6));
  for (const char* name : {"blocks.0.norm1", "blocks.0.attn", "blocks.0.norm2", "blocks.0.mlp", "blocks.0.mlp.fc1",
                           "blocks.0", "cross.scores", "cross.q_proj", "cross"}) {
    EXPECT_EQ(values.count(name), 1) << name;
  }
  EXPECT_TRUE(std::isinf(values.at("cross.scores").data<float>()[0])) << "scores include the mask";
}

TEST(Trace, EndsWithItsScopeAndDoesNotNest) {
  EXPECT_FALSE(tracing());
  {
    const TraceScope scope([](const std::string&, const Tensor&) {});
    EXPECT_TRUE(tracing());
    EXPECT_THROW(TraceScope([](const std::string&, const Tensor&) {}), Error);
    EXPECT_TRUE(tracing());
  }
  EXPECT_FALSE(tracing());
}

TEST_F(Layers, TheRootOfATraceHasNoName) {
  const Mlp root({.in_features = 2, .hidden_features = 3}, source());
  const Values values = traced_by([&] { root.forward(Tensor::zeros({1, 2})); });
  Names names;
  for (const auto& [name, value] : values) names.push_back(name);
  EXPECT_EQ(names, (Names{"act", "drop1", "drop2", "fc1", "fc2", "norm"}));
  EXPECT_ERROR(error_of([] {
                 const TraceScope first([](const std::string&, const Tensor&) {});
                 const TraceScope second([](const std::string&, const Tensor&) {});
               }),
               "trace", "a second");
  EXPECT_FALSE(tracing());
}

}  // namespace
}  // namespace vitrail::nn
