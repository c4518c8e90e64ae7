// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/block_layers_internal.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/nn/trace.h"
#include "vitrail/ops/linear.h"

namespace vitrail::quantize {
namespace {

// The first tokens become 0; the mean of the others, which is that of their image, is subtracted.
TEST(CenteredTokens, AreTheDifferencesFromTheMeanOfThePatches) {
  for (const int64_t head_tokens : {0, 1, 3, 5, 8}) {
    const Tensor x = Tensor::randn({2, 5, 3}, 1), got = centered_tokens(x, head_tokens);
    const float* const from = x.data<float>();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const int64_t image = i / 15, token = i / 3 % 5, c = i % 3;
      double mean = 0;
      for (int64_t t = head_tokens; t < 5; ++t)
        mean += from[(image * 5 + t) * 3 + c] / static_cast<double>(5 - head_tokens);
      EXPECT_NEAR(got.data<float>()[i], token < head_tokens ? 0 : from[i] - mean, 1e-6) << head_tokens << ", " << i;
    }
    EXPECT_TRUE(testing::close(x, Tensor::randn({2, 5, 3}, 1), 0)) << "the input is unchanged";
  }
}

// Whatever the kind of block, each layer's input is traced once and has the layer's width.
TEST(TracedInputs, AreTracedInEveryKindOfBlock) {
  for (const char* fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm", "timm_post_norm",
                              "timm_scale_norms", "timm_eva02_clip_base", "timm_dinov3_qkvb"}) {
    const models::VisionTransformer model = testing::model_of(fixture);
    std::map<std::string, std::vector<Shape>> traced;
    {
      const nn::TraceScope scope(
          [&](const std::string& point, const Tensor& x) { traced[point].push_back(x.shape()); });
      model.forward_features(testing::input_of(fixture));
    }
    for (int64_t block = 0; block < model.config().depth; ++block) {
      const auto inputs = traced_inputs(model, block);
      ASSERT_EQ(inputs.size(), 4u);
      for (const auto& [layer, point] : inputs) {
        ASSERT_EQ(traced[point].size(), 1u) << fixture << ": " << layer << " from " << point;
        EXPECT_EQ(traced[point][0].back(), model.parameter(layer + ".weight").size(1)) << fixture << ": " << layer;
      }
    }
  }
}

// The tensor at the point, through the layer's weight, is the layer's output.
TEST(TracedInputs, AreWhatTheLayersMultiply) {
  for (const char* fixture : {"timm_token", "timm_swiglu", "torch_encoder_post_norm", "timm_post_norm",
                              "timm_scale_norms", "timm_eva02_clip_base"}) {
    const models::VisionTransformer model = testing::model_of(fixture);
    std::map<std::string, Tensor> traced;
    {
      const nn::TraceScope scope([&](const std::string& point, const Tensor& x) { traced[point] = x.clone(); });
      model.forward_features(testing::input_of(fixture));
    }
    int64_t compared = 0;
    for (int64_t block = 0; block < model.config().depth; ++block) {
      for (const auto& [layer, point] : traced_inputs(model, block)) {
        // Biases of q and v that are no tensor of their own are left out of the comparison.
        if (layer.ends_with("qkv") && model.config().attn_type == models::AttentionType::eva) continue;
        ASSERT_TRUE(traced.contains(layer)) << fixture << ": " << layer;
        const auto names = model.named_parameters();
        const std::string bias = layer + ".bias";
        const bool biased = std::ranges::any_of(names, [&](const auto& p) { return p.name == bias; });
        const Tensor want =
            ops::linear(traced[point], model.parameter(layer + ".weight"), biased ? model.parameter(bias) : Tensor());
        EXPECT_TRUE(testing::close(traced[layer], want, 1e-4, 1e-4)) << fixture << ": " << layer << " from " << point;
        ++compared;
      }
    }
    EXPECT_GT(compared, 0) << fixture;
  }
}

TEST(ValueProjection, IsTheLastThirdOfTheFusedWeight) {
  const models::VisionTransformer model = testing::model_of("timm_token");
  const Tensor weight = model.parameter("blocks.1.attn.qkv.weight"), bias = model.parameter("blocks.1.attn.qkv.bias");
  const ValueProjection values = value_projection(model, "blocks.1.attn");
  const int64_t width = weight.size(0) / 3;
  EXPECT_TRUE(testing::close(values.weight, weight.narrow(0, 2 * width, width), 0));
  EXPECT_TRUE(testing::close(values.bias, bias.narrow(0, 2 * width, width), 0));
  EXPECT_EQ(values.weight.storage(), weight.storage()) << "a view";
  EXPECT_FALSE(value_projection(testing::model_of("timm_no_qkv_bias"), "blocks.0.attn").bias.defined());
}

TEST(TracedInputs, AreThePointsOfTheKindOfBlock) {
  using Points = std::map<std::string, std::string>;
  EXPECT_EQ(traced_inputs(testing::model_of("timm_token"), 1), (Points{{"blocks.1.attn.qkv", "blocks.1.norm1"},
                                                                       {"blocks.1.attn.proj", "blocks.1.attn.norm"},
                                                                       {"blocks.1.mlp.fc1", "blocks.1.norm2"},
                                                                       {"blocks.1.mlp.fc2", "blocks.1.mlp.norm"}}));
  const models::VisionTransformer post = testing::model_of("torch_encoder_post_norm");
  EXPECT_EQ(traced_inputs(post, 0).at("blocks.0.attn.qkv"), "norm_pre");
  EXPECT_EQ(traced_inputs(post, 1).at("blocks.1.attn.qkv"), "blocks.0");
  EXPECT_EQ(traced_inputs(post, 1).at("blocks.1.mlp.fc1"), "blocks.1.norm1");
  const models::VisionTransformer residual_post = testing::model_of("timm_post_norm");
  EXPECT_EQ(traced_inputs(residual_post, 1).at("blocks.1.attn.qkv"), "blocks.0");
  EXPECT_EQ(traced_inputs(residual_post, 1).at("blocks.1.mlp.fc1"), "blocks.1.residual1");
}

// EVA's value bias is a parameter of its own.
TEST(ValueProjection, HasTheBiasOfItsKindOfAttention) {
  for (const char* fixture : {"timm_eva02_clip_base", "timm_beit", "timm_dinov3_qkvb"}) {
    const models::VisionTransformer model = testing::model_of(fixture);
    ASSERT_EQ(model.config().attn_type, models::AttentionType::eva) << fixture;
    const ValueProjection values = value_projection(model, "blocks.1.attn");
    EXPECT_EQ(values.bias.storage(), model.parameter("blocks.1.attn.v_bias").storage()) << fixture;
    EXPECT_EQ(values.bias.numel(), values.weight.size(0));
    EXPECT_EQ(values.weight.offset(), 2 * values.weight.numel());
  }
}

}  // namespace
}  // namespace vitrail::quantize
