// SPDX-License-Identifier: Apache-2.0
// Token merging against tools/golden/token_merging.py, compiled and eager.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/golden.h"
#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/support/paths.h"
#include "vitrail/infer/session.h"
#include "vitrail/models/load.h"

namespace vitrail::infer {
namespace {

using testing::input_of;
using testing::model_of;

constexpr double kMergingTolerance = 1e-5;  // as without merging

TEST(TokenMerging, LogitsEqualTheReference) {
  const testing::Golden golden = testing::read_golden(testing::fixture("infer/token_merging.safetensors"));
  ASSERT_EQ(golden.tensors.size(), 18U);
  for (const auto& [key, want] : golden.tensors) {
    const size_t dot = key.find('.');
    const std::string fixture = key.substr(0, dot);
    const int64_t merged = std::stoll(key.substr(dot + 1));
    const Tensor input = input_of(fixture);
    const Session session(model_of(fixture), {.merged_per_block = merged});
    EXPECT_TRUE(testing::close(session.logits(input), want, kMergingTolerance, kMergingTolerance))
        << key << " compiled";
    models::VisionTransformer eager = model_of(fixture);
    eager.eval();
    eager.merge_tokens(merged);
    EXPECT_TRUE(testing::close(eager.forward(input), want, kMergingTolerance, kMergingTolerance)) << key << " eager";
  }
}

// If the head reads prefix tokens only, nothing reads the patch tokens after the attention of the last block.
TEST(TokenMerging, TheLastBlockMergesNothingWhereTheHeadReadsPrefixTokens) {
  const auto blocks_without_merging = [](const std::string& fixture, const Request& request) {
    const Session session(model_of(fixture), {.merged_per_block = 2});
    const auto& config = session.config();
    const auto steps = session.program({1, config.in_chans, config.img_size[0], config.img_size[1]}, request)->steps();
    const auto with_merging = std::count_if(steps.begin(), steps.end(), [](const Step& step) {
      return step.text.find("merge_tokens") != std::string::npos;
    });
    return config.depth - with_merging;
  };
  EXPECT_EQ(blocks_without_merging("timm_token", {}), 1);
  EXPECT_EQ(blocks_without_merging("timm_token", {.output = Output::features, .features = {.tokens = Tokens::pooled}}),
            1);
  EXPECT_EQ(blocks_without_merging("timm_distilled", {}), 1);
  EXPECT_EQ(blocks_without_merging("timm_avg", {}), 0) << "the head reads all tokens";
}

// Each block passes fewer tokens to the next.
TEST(TokenMerging, TokensDisappearBlockByBlock) {
  models::VisionTransformer model = model_of("timm_distilled");  // 16 patches, a class and a distillation token
  model.eval();
  model.merge_tokens(3);
  const Tensor input = input_of("timm_distilled");
  Tensor shares;
  EXPECT_EQ(model.intermediate(input, {.layer = 0, .final_norm = false}, &shares).size(1), 2 + 16 - 3);
  EXPECT_EQ(shares.size(1), 15);
  EXPECT_EQ(model.forward_features(input, &shares).size(1), 2 + 16 - 6);
  double patches = 0;
  for (int64_t i = 2; i < 12; ++i) patches += shares.select(0, 0).data<float>()[i];
  EXPECT_NEAR(patches, 1, 1e-6);
  model.train();
  EXPECT_EQ(model.forward_features(input).size(1), 18) << "training merges nothing";
}

TEST(TokenMerging, EachImageOfABatchHasTheSameBitsAsInABatchOfOne) {
  const Session session(model_of("timm_avg"), {.merged_per_block = 3});
  const Tensor batch = Tensor::randn({5, 3, 16, 16}, 3), batched = session.logits(batch);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(testing::close(session.logits(batch.narrow(0, i, 1)), batched.narrow(0, i, 1), 0)) << i;
  }
}

TEST(TokenMerging, RequestsForSinglePatchesAreErrors) {
  const Session session(model_of("timm_token"), {.merged_per_block = 2});
  const Tensor input = input_of("timm_token");
  const auto expect_refused = [&](const Request& request) {
    const std::string message = testing::error_of([&] { session.run(input, request); });
    EXPECT_TRUE(testing::contains(message, "a model without token merging")) << message;
  };
  for (const Tokens tokens : {Tokens::patch, Tokens::grid, Tokens::all}) {
    expect_refused({.output = Output::features, .features = {.tokens = tokens}});
    expect_refused({.output = Output::logits_and_features, .features = {.tokens = tokens}});
  }
  expect_refused({.output = Output::features, .features = {.layers = {0, 1}}});
  expect_refused({.output = Output::attention});
  expect_refused({.output = Output::attention, .all_layers = true});
  EXPECT_EQ(session.run(input, {.output = Output::features, .features = {.tokens = Tokens::cls}})[0].size(1), 18);
  EXPECT_THROW(Session(model_of("timm_token"), {.merged_per_block = -1}), Error);
  EXPECT_THROW(Session(model_of("timm_map"), {.merged_per_block = 1}), Error) << "attention pooling";
  EXPECT_THROW(Session(model_of("timm_beit"), {.merged_per_block = 1}), Error) << "relative position bias";
  EXPECT_THROW(model_of("timm_beit_shared").drop_patches_in_training(0.5), Error);
}

}  // namespace
}  // namespace vitrail::infer
