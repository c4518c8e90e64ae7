// SPDX-License-Identifier: Apache-2.0
#include "vitrail/quantize/sensitivity.h"

#include <gtest/gtest.h>
#include <cmath>
#include <map>

#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "vitrail/base/error.h"
#include "vitrail/infer/session.h"
#include "vitrail/quantize/rounding.h"

namespace vitrail::quantize {
namespace {

using infer::Session;
using testing::input_of;
using testing::model_of;

double error_of(const std::vector<Int8Sensitivity>& sensitivity, const std::string& layer) {
  for (const Int8Sensitivity& item : sensitivity) {
    if (item.layer == layer) return item.error;
  }
  ADD_FAILURE() << "no layer " << layer;
  return 0;
}

TEST(Int8Sensitivity, ListsEveryLayerByDescendingError) {
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

// The error is relative to the original weights, though the model has the rounded ones.
TEST(Int8Sensitivity, CountsTheErrorOfRounding) {
  models::VisionTransformer model = model_of("timm_token");
  const std::vector<Tensor> images{input_of("timm_token")};
  const std::map<std::string, Tensor> originals = gptq_round(model, images);
  const Tensor spoiled = model.parameter("blocks.0.mlp.fc1.weight");
  for (int64_t i = 0; i < spoiled.numel(); i += 2) spoiled.data<float>()[i] *= 0.5F;
  EXPECT_EQ(int8_sensitivity(model, images, originals).at(0).layer, "blocks.0.mlp.fc1");
  EXPECT_LT(error_of(int8_sensitivity(model, images), "blocks.0.mlp.fc1"),
            error_of(int8_sensitivity(model, images, originals), "blocks.0.mlp.fc1") / 10);
}

TEST(LayersToExclude, TakesTheLargestSquaredErrorPerCostFirst) {
  EXPECT_EQ(layers_to_exclude({{"a", 3, 100}, {"b", 2, 1}, {"c", 1, 10}}, 3.5), (std::vector<std::string>{"b"}));
  EXPECT_EQ(layers_to_exclude({{"a", 3, 100}, {"b", 2, 1}, {"c", 1, 10}}, 3), (std::vector<std::string>{"b", "c"}));
}

// Such layers are those of the last block that are computed for the class token only.
TEST(LayersToExclude, TakesLayersOfNegligibleCost) {
  EXPECT_EQ(layers_to_exclude({{"a", 3, 1000}, {"b", 2, 1000}, {"c", 1e-3, 1}}, 10), (std::vector<std::string>{"c"}));
}

TEST(LayersToExclude, TakesAsFewAsTheToleranceAllowsForEqualCosts) {
  const std::vector<Int8Sensitivity> errors{{"a", 3}, {"b", 2}, {"c", 1}};
  EXPECT_TRUE(layers_to_exclude(errors, 4).empty());                                // √14 = 3.74
  EXPECT_EQ(layers_to_exclude(errors, 2.3), (std::vector<std::string>{"a"}));       // √5 = 2.24
  EXPECT_EQ(layers_to_exclude(errors, 1.5), (std::vector<std::string>{"a", "b"}));  // 1
  EXPECT_EQ(layers_to_exclude(errors, 0.5), (std::vector<std::string>{"a", "b", "c"}));
}

// An int8 session with every layer excluded to fp32 is the fp32 session.
TEST(ExcludedLayers, HaveTheirOwnPrecision) {
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

// A head of zeros gives logits of zeros with and without rounding: there is no error to divide by their length.
TEST(Int8Sensitivity, OfLogitsThatAreZeroIsZero) {
  models::VisionTransformer model = model_of("timm_token");
  model.requires_grad(true);
  model.requires_grad(false);
  for (const char* name : {"head.weight", "head.bias"})
    model.parameter(name).copy_(Tensor::zeros(model.parameter(name).shape()));
  for (const Int8Sensitivity& item : int8_sensitivity(model, {input_of("timm_token")}))
    EXPECT_EQ(item.error, 0) << item.layer;
}

TEST(LayersToExclude, AreNoneWithinTheToleranceAndAllWithoutOne) {
  const std::vector<Int8Sensitivity> layers{{"a", 0.3, 100}, {"b", 0.4, 100}, {"c", 0, 100}};
  EXPECT_TRUE(layers_to_exclude(layers, 0.5).empty()) << "0.3² + 0.4² = 0.5²";
  EXPECT_EQ(layers_to_exclude(layers, 0.31), std::vector<std::string>{"b"});
  EXPECT_EQ(layers_to_exclude(layers, 0.29), (std::vector<std::string>{"b", "a"}));
  EXPECT_TRUE(layers_to_exclude({}, 0.1).empty());
}

// Multiply-adds of an image: in the last block only qkv is computed for tokens that no head reads.
TEST(Int8Sensitivity, CostsAreTheMultiplyAddsOfAnImage) {
  struct Case {
    const char* fixture;
    int64_t width, hidden, tokens, head_tokens;
  };
  for (const Case& each :
       {Case{"timm_token", 18, 72, 17, 1}, Case{"timm_avg", 18, 27, 17, 0}, Case{"timm_distilled", 18, 27, 18, 2}}) {
    const models::VisionTransformer model = model_of(each.fixture);
    const Tensor images = input_of(each.fixture);
    std::map<std::string, double> costs;
    for (const Int8Sensitivity& item : int8_sensitivity(model, {images})) costs[item.layer] = item.cost;
    ASSERT_EQ(costs.size(), 8u);
    for (const int block : {0, 1}) {
      const int64_t last = block == 1 && each.head_tokens > 0 ? each.head_tokens : each.tokens;
      const auto cost = [&](const std::string& layer) { return costs.at(str("blocks.", block, layer)); };
      EXPECT_EQ(cost(".attn.qkv"), static_cast<double>(3 * each.width * each.width * each.tokens)) << each.fixture;
      EXPECT_EQ(cost(".attn.proj"), static_cast<double>(each.width * each.width * last)) << each.fixture;
      EXPECT_EQ(cost(".mlp.fc1"), static_cast<double>(each.width * each.hidden * last)) << each.fixture;
      EXPECT_EQ(cost(".mlp.fc2"), static_cast<double>(each.width * each.hidden * last)) << each.fixture;
    }
  }
}

// ‖ŷ − y‖ / ‖y‖ over all batches, with one layer in int8 and all others in fp32.
TEST(Int8Sensitivity, IsTheRelativeErrorOfTheLogits) {
  const std::vector<Tensor> images{input_of("timm_token"), Tensor::randn({3, 3, 32, 32}, 1)};
  const std::vector<Int8Sensitivity> all = int8_sensitivity(model_of("timm_token"), images);
  const Session exact(model_of("timm_token"));
  for (const std::string layer : {"blocks.0.attn.qkv", "blocks.1.mlp.fc2"}) {
    std::vector<std::string> others;
    for (const Int8Sensitivity& item : all) {
      if (item.layer != layer) others.push_back(item.layer);
    }
    ASSERT_EQ(others.size(), 7u);
    const Session session(model_of("timm_token"), {.precision = kernels::Precision::int8,
                                                   .excluded_layers = others,
                                                   .excluded_precision = kernels::Precision::fp32});
    double difference = 0, length = 0;
    for (const Tensor& batch : images) {
      const Tensor want = exact.logits(batch);
      difference += testing::squared_error(session.logits(batch), want);
      length += testing::squared_error(want, Tensor::zeros(want.shape()));
    }
    EXPECT_NEAR(error_of(all, layer), std::sqrt(difference / length), 1e-9) << layer;
  }
}

TEST(LayersToExclude, ALayerOfAThousandthOfTheCostIsNegligible) {
  EXPECT_EQ(layers_to_exclude({{"a", 0.1, 999}, {"b", 0.1, 1}}, 10), (std::vector<std::string>{"b"}));
  EXPECT_TRUE(layers_to_exclude({{"a", 0.1, 998}, {"b", 0.1, 2}}, 10).empty());
}

// A negligible layer does not end the choice, and its error no longer counts.
TEST(LayersToExclude, GoOnBehindLayersThatAreKept) {
  EXPECT_EQ(layers_to_exclude({{"a", 2, 1000}, {"b", 1, 2000}, {"c", 1e-3, 1}}, 1.5),
            (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(layers_to_exclude({{"a", 1, 10}, {"b", 1, 10}, {"c", 1, 10}}, 1), (std::vector<std::string>{"a", "b"}))
      << "equal layers in their order, until one is within the tolerance";
}

}  // namespace
}  // namespace vitrail::quantize
