// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/trace.h"

#include <cmath>
#include <map>

#include "tests/support/golden.h"
#include "vitrail/base/error.h"
#include "vitrail/nn/block.h"
#include "vitrail/nn/multihead_attention.h"
#include "vitrail/nn/patch_embed.h"
#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/linear.h"
#include "vitrail/ops/tokens.h"

namespace vitrail::nn {
namespace {

using Values = std::map<std::string, Tensor>;

template <class Run>
Values traced(Run run) {
  Values values;
  const TraceScope scope([&](const std::string& name, const Tensor& tensor) { values[name] = tensor; });
  run();
  return values;
}

TEST(Trace, PatchEmbedReportsTheFeatureMapAndTheTokens) {
  RandomParams params(1);
  const PatchEmbed layer({.img_size = {8, 12}, .patch_size = {4, 4}, .embed_dim = 5},
                         ParamSource(params, "patch_embed"));
  const Tensor image = Tensor::randn({2, 3, 8, 12}, 1);
  const Values values = traced([&] { layer.forward(image); });
  EXPECT_EQ(values.at("patch_embed.patches").shape(), (Shape{2, 5, 2, 3}));
  EXPECT_TRUE(testing::close(values.at("patch_embed.tokens"), layer.forward(image), 0));
  EXPECT_TRUE(
      testing::close(values.at("patch_embed.patches").flatten(2).transpose(1, 2), values.at("patch_embed.tokens"), 0));
}

TEST(Trace, AttentionReportsEveryStepOfTheFormula) {
  RandomParams params(1);
  const Attention layer({.dim = 24, .num_heads = 3, .qkv_bias = true}, ParamSource(params, "attn"));
  const Tensor x = Tensor::randn({2, 5, 24}, 1);
  Tensor out;
  const Values values = traced([&] { out = layer.forward(x); });
  const auto at = [&](const std::string& name) { return values.at("attn." + name); };
  for (const char* name : {"q", "k", "v", "context"}) EXPECT_EQ(at(name).shape(), (Shape{2, 3, 5, 8})) << name;
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
  const Values values = traced([&] {
    block_out = block.forward(x);
    cross_out = cross.forward(x, memory, memory, {.attn_mask = mask});
  });
  // The fused attention sums in another order.
  EXPECT_TRUE(testing::close(block_out, block.forward(x), 1e-6));
  const MultiheadAttentionOutput expected = cross.forward(x, memory, memory, {.attn_mask = mask});
  EXPECT_TRUE(testing::close(cross_out.out, expected.out, 1e-6));
  EXPECT_TRUE(testing::close(cross_out.weights, expected.weights, 1e-6));
  for (const char* name : {"blocks.0.norm1", "blocks.0.attn", "blocks.0.norm2", "blocks.0.mlp", "blocks.0.mlp.fc1",
                           "blocks.0.out", "cross.scores"}) {
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

}  // namespace
}  // namespace vitrail::nn
