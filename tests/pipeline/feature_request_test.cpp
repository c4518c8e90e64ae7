// SPDX-License-Identifier: Apache-2.0
#include "vitrail/pipeline/feature_request.h"

#include <gtest/gtest.h>

#include "tests/apps/cli_fixture.h"

namespace vitrail::pipeline {
namespace {

using infer::Output;
using infer::Tokens;

TEST(FeatureRequest, TokensHaveTheNamesOfTheCommandLine) {
  const Model model(testing::small_model());
  for (const auto& [name, tokens] : {std::pair("pooled", Tokens::pooled), std::pair("cls", Tokens::cls),
                                     std::pair("patch", Tokens::grid), std::pair("all", Tokens::all)}) {
    EXPECT_EQ(feature_request(model, {.tokens = name}).tokens, tokens) << name;
    EXPECT_EQ(feature_request(model, {.tokens = name, .layers = {0, 1}}).tokens, tokens) << name;
  }
  for (const char* name : {"", "grid", "Pooled"}) EXPECT_THROW(feature_request(model, {.tokens = name}), Error) << name;
  EXPECT_THROW(feature_request(model, {.layers = {}}), Error);
}

TEST(FeatureRequest, LayersAndTheNormAreThoseOfTheOptions) {
  const Model model(testing::small_model());
  for (const bool norm : {false, true}) {
    const infer::Request one = feature_request(model, {.layers = {0}, .final_norm = norm});
    EXPECT_EQ(one.output, Output::features);
    EXPECT_EQ(one.layer, 0);
    EXPECT_EQ(one.normalize, norm);
    EXPECT_TRUE(one.layers.empty());
    const infer::Request two = feature_request(model, {.layers = {1, 0}, .final_norm = norm});
    EXPECT_EQ(two.output, Output::features);
    EXPECT_EQ(two.layers, (std::vector<int64_t>{1, 0}));
    EXPECT_EQ(two.normalize, norm);
  }
}

// The pooled features of a projection's last block are projected, those of others and without the norm are not.
TEST(FeatureRequest, OnlyTheLastPooledFeaturesOfAProjectionAreProjected) {
  const Model model(testing::fixture("models/hf_clip"));
  const int64_t depth = model.config().vit.depth;
  const auto projected = [&](const FeatureOptions& options) {
    return feature_request(model, options).output == Output::logits;
  };
  EXPECT_TRUE(projected({}));
  EXPECT_TRUE(projected({.layers = {depth - 1}}));
  EXPECT_FALSE(projected({.layers = {0}}));
  EXPECT_FALSE(projected({.layers = {-depth}}));
  EXPECT_FALSE(projected({.final_norm = false}));
  EXPECT_FALSE(projected({.tokens = "cls"}));
  EXPECT_FALSE(projected({.layers = {0, -1}}));
}

}  // namespace
}  // namespace vitrail::pipeline
