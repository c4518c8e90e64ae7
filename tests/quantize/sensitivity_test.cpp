// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/sensitivity.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"
#include "vitrail/quantize/rounding.h"
#include "vitrail/quantize/smoothing.h"

namespace vitrail::quantize {
namespace {

using infer::Session;
using testing::input_of;
using testing::model_of;

TEST(SmoothActivations, KeepsTheOutputs) {
  for (const std::string fixture : {"timm_token", "timm_layer_scale", "timm_swiglu", "timm_qk_norm", "timm_no_qkv_bias",
                                    "torch_encoder_post_norm"}) {
    models::VisionTransformer model = model_of(fixture);
    const Tensor input = input_of(fixture), before = model.forward(input),
                 weight = model.parameter("blocks.0.attn.proj.weight").clone();
    smooth_activations(model, {input});
    EXPECT_TRUE(testing::close(model.forward(input), before, 1e-5, 1e-5)) << fixture;
    EXPECT_FALSE(testing::close(model.parameter("blocks.0.attn.proj.weight"), weight, 1e-3)) << fixture;
  }
}

double int8_error(const std::vector<Int8Sensitivity>& sensitivity, const std::string& layer) {
  for (const Int8Sensitivity& item : sensitivity) {
    if (item.layer == layer) return item.error;
  }
  ADD_FAILURE() << "no layer " << layer;
  return 0;
}

// An outlier channel, fifty times larger than the others as in large models, dominates the scale of each token.
TEST(SmoothActivations, ReducesTheErrorThatAnOutlierChannelCauses) {
  models::VisionTransformer model = model_of("timm_token");
  model.requires_grad(true);  // copies the parameters, so that they are writable
  model.requires_grad(false);
  const Tensor gamma = model.parameter("blocks.0.norm1.weight"), beta = model.parameter("blocks.0.norm1.bias"),
               qkv = model.parameter("blocks.0.attn.qkv.weight");
  gamma.data<float>()[3] *= 50;
  beta.data<float>()[3] *= 50;
  for (int64_t r = 0; r < qkv.size(0); ++r) qkv.data<float>()[r * qkv.size(1) + 3] /= 50;
  const std::vector<Tensor> images{input_of("timm_token")};
  const double before = int8_error(int8_sensitivity(model, images), "blocks.0.attn.qkv");
  smooth_activations(model, images);
  EXPECT_LT(int8_error(int8_sensitivity(model, images), "blocks.0.attn.qkv"), before / 4);
}

TEST(Int8Sensitivity, ListsEveryLayerByDecreasingError) {
  const models::VisionTransformer model = model_of("timm_token");
  const std::vector<Int8Sensitivity> all = int8_sensitivity(model, {input_of("timm_token")});
  ASSERT_EQ(all.size(), 8U);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_GT(all[i].error, 0) << all[i].layer;
    if (i > 0) {
      EXPECT_LE(all[i].error, all[i - 1].error);
    }
  }
}

// The error of an already rounded weight is measured against the original weight.
TEST(Int8Sensitivity, IncludesTheRoundingErrorOfTheWeights) {
  models::VisionTransformer model = model_of("timm_token");
  const std::vector<Tensor> images{input_of("timm_token")};
  const std::map<std::string, Tensor> before = gptq_round(model, images);
  const Tensor damaged = model.parameter("blocks.0.mlp.fc1.weight");
  for (int64_t i = 0; i < damaged.numel(); i += 2) damaged.data<float>()[i] *= 0.5F;
  EXPECT_EQ(int8_sensitivity(model, images, before).at(0).layer, "blocks.0.mlp.fc1");
  EXPECT_LT(int8_error(int8_sensitivity(model, images), "blocks.0.mlp.fc1"),
            int8_error(int8_sensitivity(model, images, before), "blocks.0.mlp.fc1") / 10);
}

TEST(LayersToExclude, HaveTheLargestSquaredErrorPerCost) {
  EXPECT_EQ(layers_to_exclude({{"a", 3, 100}, {"b", 2, 1}, {"c", 1, 10}}, 3.5), (std::vector<std::string>{"b"}));
  EXPECT_EQ(layers_to_exclude({{"a", 3, 100}, {"b", 2, 1}, {"c", 1, 10}}, 3), (std::vector<std::string>{"b", "c"}));
}

// For example those of the last block that run on the CLS token only.
TEST(LayersToExclude, IncludeLayersOfNegligibleCost) {
  EXPECT_EQ(layers_to_exclude({{"a", 3, 1000}, {"b", 2, 1000}, {"c", 1e-3, 1}}, 10), (std::vector<std::string>{"c"}));
}

TEST(LayersToExclude, WithEqualCostsAreAsFewAsTheToleranceAllows) {
  const std::vector<Int8Sensitivity> errors{{"a", 3}, {"b", 2}, {"c", 1}};
  EXPECT_TRUE(layers_to_exclude(errors, 4).empty());                                // √14 = 3.74
  EXPECT_EQ(layers_to_exclude(errors, 2.3), (std::vector<std::string>{"a"}));       // √5 = 2.24
  EXPECT_EQ(layers_to_exclude(errors, 1.5), (std::vector<std::string>{"a", "b"}));  // 1
  EXPECT_EQ(layers_to_exclude(errors, 0.5), (std::vector<std::string>{"a", "b", "c"}));
}

// With all layers excluded from int8 and run in fp32, the session equals one in fp32.
TEST(Session, RunsExcludedLayersInTheirOwnPrecision) {
  const Tensor input = input_of("timm_token");
  std::vector<std::string> all;
  for (const std::string block : {"blocks.0", "blocks.1"}) {
    for (const std::string layer : {".attn.qkv", ".attn.proj", ".mlp.fc1", ".mlp.fc2"}) all.push_back(block + layer);
  }
  const Session session(
      model_of("timm_token"),
      {.precision = kernels::Precision::int8, .excluded_layers = all, .excluded_precision = kernels::Precision::fp32});
  EXPECT_TRUE(testing::close(session.logits(input), Session(model_of("timm_token")).logits(input), 0));
  EXPECT_ANY_THROW(Session(model_of("timm_token"),
                           {.precision = kernels::Precision::int8, .excluded_layers = {"blocks.7.mlp.fc2"}}));
}

}  // namespace
}  // namespace vitrail::quantize
