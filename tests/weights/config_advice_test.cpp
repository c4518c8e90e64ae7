// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/config_advice_internal.h"

#include <gtest/gtest.h>

namespace vitrail::weights {
namespace {

using Lines = std::vector<std::string>;
using NamedShapes = std::vector<NamedShape>;

// A model of two blocks.
const std::set<std::string> kPlain{"patch_embed.proj.weight", "pos_embed",   "cls_token",  "blocks.0.norm1.weight",
                                   "blocks.1.norm1.weight",   "norm.weight", "head.weight"};

Lines lines(const NamedShapes& extra, const NamedShapes& missing = {}) { return advise_fields(missing, extra, kPlain); }

TEST(ConfigAdvice, TheFieldIsNamedThatAddsTheParameters) {
  const std::pair<NamedShapes, const char*> cases[] = {
      {{{"blocks.0.ls1.gamma", {8}}, {"blocks.0.ls2.gamma", {8}}, {"blocks.1.ls1.gamma", {8}}},
       "blocks.0.ls1.gamma: \"init_values\": 1e-5"},
      {{{"blocks.0.attn.q_norm.weight", {4}}, {"blocks.0.attn.k_norm.weight", {4}}},
       "blocks.0.attn.q_norm.weight: \"qk_norm\": true"},
      {{{"attn_pool.latent", {1, 1, 8}}, {"attn_pool.q.weight", {8, 8}}}, "attn_pool.latent: \"global_pool\": \"map\""},
      {{{"norm_pre.weight", {8}}, {"norm_pre.bias", {8}}}, "norm_pre.weight: \"pre_norm\": true"},
      {{{"reg_token", {1, 4, 8}}}, "reg_token: \"reg_tokens\": 4"},
      {{{"pre_logits.fc.weight", {6, 8}}}, "pre_logits.fc.weight: \"head_hidden\": 6"},
      {{{"dist_token", {1, 1, 8}}, {"head_dist.weight", {5, 8}}}, "dist_token: \"dist_token\": true"},
      {{{"rel_pos_bias.relative_position_bias_table", {9, 2}}},
       "rel_pos_bias.relative_position_bias_table: \"use_shared_rel_pos_bias\": true"}};
  for (const auto& [extra, line] : cases) EXPECT_EQ(lines(extra), Lines{line});
}

TEST(ConfigAdvice, BlocksBehindTheLastOneAreTheDepth) {
  const NamedShapes deeper{{"blocks.2.norm1.weight", {8}}, {"blocks.10.norm1.weight", {8}}};
  EXPECT_EQ(lines(deeper), Lines{"blocks.10.norm1.weight: \"depth\": 11"});
  EXPECT_EQ(lines({{"blocks.2.other", {8}}}), Lines{}) << "no parameter of a block";
  EXPECT_EQ(lines({{"blocks.123456789123456789123.norm1.weight", {8}}}), Lines{});
}

TEST(ConfigAdvice, TheNormIsOnTheSideOfThePoolingThatTheFileHas) {
  EXPECT_EQ(lines({{"fc_norm.weight", {8}}}, {{"norm.weight", {8}}}),
            Lines{"fc_norm.weight: \"global_pool\": \"avg\""});
  EXPECT_EQ(lines({{"fc_norm.weight", {8}}}), Lines{}) << "beside norm";
  std::set<std::string> mean = kPlain;
  mean.erase("norm.weight");
  mean.insert("fc_norm.weight");
  EXPECT_EQ(advise_fields({{"fc_norm.weight", {8}}}, {{"norm.weight", {8}}}, mean),
            Lines{"norm.weight: \"global_pool\": \"token\", or \"fc_norm\": false for the mean of normalised tokens"});
}

TEST(ConfigAdvice, AMissingClassTokenMayHaveAnotherName) {
  const NamedShapes token{{"cls_token", {1, 1, 8}}};
  EXPECT_EQ(lines({}, token), Lines{"cls_token: \"class_token\": false"});
  EXPECT_EQ(lines({{"class_embedding", {1, 1, 8}}}, token), Lines{});
}

TEST(ConfigAdvice, ThereIsNoneForOtherTensorsAndOtherModels) {
  EXPECT_EQ(lines({{"masked_embed", {8}}, {"head.0.weight", {8, 8}}, {"norms.weight", {8}}}), Lines{});
  EXPECT_EQ(lines({{"norm.bias", {8}}, {"head.weight", {5, 8}}}), Lines{}) << "the model has these layers";
  EXPECT_EQ(advise_fields({}, {{"blocks.0.ls1.gamma", {8}}}, {"mask_decoder.norm.weight"}), Lines{});
}

TEST(ConfigAdvice, ParametersAreKnownByTheirNames) {
  for (const char* name : {"blocks.0.norm1.weight", "blocks.11.attn.qkv.bias", "norm.bias", "fc_norm.weight",
                           "head.weight", "head.bias", "attn_pool.mlp.fc1.weight", "pos_embed"}) {
    EXPECT_TRUE(is_parameter(name)) << name;
  }
  for (const char* name : {"", "blocks", "blocks.", "blocks.x.norm1.weight", "blocks.0", "head.0.weight",
                           "head.weight_g", "pos_embedding", "x.norm.bias", "blocks..norm1.weight"}) {
    EXPECT_FALSE(is_parameter(name)) << name;
  }
}

}  // namespace
}  // namespace vitrail::weights
