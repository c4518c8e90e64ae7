// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/apps/cli_fixture.h"
#include "vitrail/pipeline/feature_fields.h"
#include "vitrail/pipeline/model.h"

namespace vitrail::pipeline {
namespace {

using infer::Output;
using infer::Tokens;

TEST(FeatureFields, TokensHaveTheNamesOfTheCommandLine) {
  for (const auto& [name, tokens] : {std::pair("pooled", Tokens::pooled), std::pair("cls", Tokens::cls),
                                     std::pair("patch", Tokens::grid), std::pair("all", Tokens::all)}) {
    infer::FeatureOptions options;
    set_field(describe_features, options, "tokens", {name});
    EXPECT_EQ(options.tokens, tokens);
    EXPECT_EQ(rows_of(describe_features, options)[0].preset, name);
  }
}

TEST(FeatureRequest, HasTheOptions) {
  const Model model(testing::small_model());
  const infer::FeatureOptions options{
      .tokens = Tokens::all, .layers = {1, 0}, .final_norm = false, .l2_normalize = true};
  EXPECT_EQ(model.request_of(options), (infer::Request{.output = Output::features, .features = options}));
  EXPECT_THROW(model.request_of({.layers = {}}), Error);
}

// The pooled features of a projection's last block are projected, those of others and without the norm are not.
TEST(FeatureRequest, OnlyTheLastPooledFeaturesOfAProjectionAreProjected) {
  const Model model(testing::fixture("models/hf_clip"));
  const int64_t depth = model.config().vit.depth;
  const auto projected = [&](const infer::FeatureOptions& options) {
    return model.request_of(options).output == Output::logits;
  };
  EXPECT_TRUE(projected({}));
  EXPECT_TRUE(model.request_of({.l2_normalize = true}).features.l2_normalize);
  EXPECT_TRUE(projected({.layers = {depth - 1}}));
  EXPECT_FALSE(projected({.layers = {0}}));
  EXPECT_FALSE(projected({.layers = {-depth}}));
  EXPECT_FALSE(projected({.final_norm = false}));
  EXPECT_FALSE(projected({.tokens = Tokens::cls}));
  EXPECT_FALSE(projected({.layers = {-1, -1}}));
}

}  // namespace
}  // namespace vitrail::pipeline
