// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rule_proposals_internal.h"

#include <gtest/gtest.h>

#include "vitrail/weights/key_map.h"

namespace vitrail::weights {
namespace {

using Texts = std::vector<std::string>;

// What the proposed rules, as a key map, make of a name.
std::string renamed(const Texts& rules, const std::string& name) {
  std::string json = R"({"name": "test", "rules": [)";
  for (size_t i = 0; i < rules.size(); ++i) json += (i ? "," : "") + rules[i];
  return KeyMap::parse(json + "]}", "proposals").match(name).native;
}

TEST(RuleProposals, RenamedTensorsOfTheSameShapeAreFound) {
  const Texts rules = propose_rules(
      {{"blocks.0.ls1.gamma", {8}},
       {"blocks.0.ls2.gamma", {8}},
       {"blocks.11.ls1.gamma", {8}},
       {"blocks.11.ls2.gamma", {8}}},
      {{"blocks.0.gamma_1", {8}}, {"blocks.0.gamma_2", {8}}, {"blocks.11.gamma_1", {8}}, {"blocks.11.gamma_2", {8}}});
  EXPECT_EQ(rules, (Texts{R"({"from":"blocks\\.(\\d+)\\.gamma_1","to":"blocks.$1.ls1.gamma"})",
                          R"({"from":"blocks\\.(\\d+)\\.gamma_2","to":"blocks.$1.ls2.gamma"})"}));
  EXPECT_EQ(renamed(rules, "blocks.7.gamma_2"), "blocks.7.ls2.gamma");
}

TEST(RuleProposals, WeightAndBiasAreOneRule) {
  const Texts rules = propose_rules({{"blocks.0.mlp.fc1.weight", {16, 8}},
                                     {"blocks.0.mlp.fc1.bias", {16}},
                                     {"blocks.0.norm1.weight", {8}},
                                     {"blocks.0.norm1.bias", {8}}},
                                    {{"layers.0.norm1.bias", {8}},
                                     {"layers.0.norm1.weight", {8}},
                                     {"layers.0.ffn.w1.bias", {16}},
                                     {"layers.0.ffn.w1.weight", {16, 8}}});
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(renamed(rules, "layers.3.ffn.w1.bias"), "blocks.3.mlp.fc1.bias");
  EXPECT_EQ(renamed(rules, "layers.3.norm1.weight"), "blocks.3.norm1.weight");
}

TEST(RuleProposals, SeparateProjectionsAreTheThirdsOfAFusedOne) {
  const Texts rules = propose_rules({{"blocks.0.attn.qkv.weight", {24, 8}}, {"blocks.0.attn.proj.weight", {8, 8}}},
                                    {{"layer.0.attention.output.weight", {8, 8}},
                                     {"layer.0.attention.query.weight", {8, 8}},
                                     {"layer.0.attention.key.weight", {8, 8}},
                                     {"layer.0.attention.value.weight", {8, 8}}});
  EXPECT_EQ(
      rules,
      (Texts{R"({"from":"layer\\.(\\d+)\\.attention\\.query\\.weight","to":"blocks.$1.attn.qkv.weight","part":[0,3]})",
             R"({"from":"layer\\.(\\d+)\\.attention\\.key\\.weight","to":"blocks.$1.attn.qkv.weight","part":[1,3]})",
             R"({"from":"layer\\.(\\d+)\\.attention\\.value\\.weight","to":"blocks.$1.attn.qkv.weight","part":[2,3]})",
             R"({"from":"layer\\.(\\d+)\\.attention\\.output\\.weight","to":"blocks.$1.attn.proj.weight"})"}));
}

TEST(RuleProposals, OfTensorsOfOneShapeTheNearestNameIsTaken) {
  const std::vector<NamedShape> native{{"pre.weight", {8}}, {"post.weight", {8}}};
  for (const std::vector<NamedShape>& given :
       {std::vector<NamedShape>{{"x.post.weight", {8}}, {"x.pre.weight", {8}}},
        std::vector<NamedShape>{{"x.pre.weight", {8}}, {"x.post.weight", {8}}}}) {
    const Texts rules = propose_rules(native, given);
    EXPECT_EQ(renamed(rules, "x.pre.weight"), "pre.weight");
    EXPECT_EQ(renamed(rules, "x.post.weight"), "post.weight");
  }
}

TEST(RuleProposals, WhatNoParameterNeedsIsDropped) {
  EXPECT_EQ(propose_rules({}, {{"masked_embed", {1, 8}}}), Texts{R"({"from":"masked_embed","drop":true})"});
}

TEST(RuleProposals, OtherShapesCountsAndKindsDoNotFit) {
  EXPECT_TRUE(propose_rules({{"norm.weight", {8}}}, {{"ln.weight", {9}}}).empty());
  EXPECT_TRUE(propose_rules({{"norm.weight", {8}}}, {{"ln.bias", {8}}}).empty());
  EXPECT_TRUE(
      propose_rules({{"blocks.0.norm.weight", {8}}, {"blocks.1.norm.weight", {8}}}, {{"ln.0.weight", {8}}}).empty());
}

TEST(RuleProposals, NamesAreQuotedAndFew) {
  const Texts quoted = propose_rules({}, {{"a[0]+\"b\"\n$", {1}}});
  ASSERT_EQ(quoted.size(), 1u);
  EXPECT_TRUE(KeyMap::parse(R"({"name": "test", "rules": [)" + quoted[0] + "]}", "x").match("a[0]+\"b\"\n$").dropped());
  std::vector<NamedShape> many;
  for (int i = 0; i < 5000; ++i) many.push_back({"x" + std::to_string(i) + "y", {1}});
  EXPECT_EQ(propose_rules({}, many).size(), 24u);
}

}  // namespace
}  // namespace vitrail::weights
