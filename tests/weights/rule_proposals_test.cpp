// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/rule_proposals_internal.h"

#include <gtest/gtest.h>

#include <array>

#include "vitrail/base/error.h"
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

TEST(RuleProposals, NamesThatAreEqualNeedNoRule) {
  EXPECT_EQ(propose_rules({{"a.weight", {8}}, {"b.x", {9}}}, {{"a.weight", {8}}, {"c.x", {9}}}),
            Texts{R"({"from":"c\\.x","to":"b.x"})"});
}

TEST(RuleProposals, EachTensorIsUsedOnce) {
  EXPECT_EQ(propose_rules({{"one", {8}}, {"two", {8}}, {"three", {8}}}, {{"one_", {8}}, {"two_", {8}}}),
            (Texts{R"({"from":"one_","to":"one"})", R"({"from":"two_","to":"two"})"}));
}

TEST(RuleProposals, WeightAndBiasOfOneRuleAreWritten) {
  EXPECT_EQ(propose_rules({{"blocks.0.fc.weight", {4, 3}}, {"blocks.0.fc.bias", {4}}},
                          {{"l.0.w1.bias", {4}}, {"l.0.w1.weight", {4, 3}}}),
            Texts{R"~({"from":"l\\.(\\d+)\\.w1\\.(weight|bias)","to":"blocks.$1.fc.$2"})~"});
  EXPECT_EQ(propose_rules({{"a.weight", {4, 3}}, {"a.bias", {4}}}, {{"b.weight", {4, 3}}, {"c.bias", {4}}}),
            (Texts{R"({"from":"b\\.weight","to":"a.weight"})", R"({"from":"c\\.bias","to":"a.bias"})"}))
      << "of two layers";
  EXPECT_EQ(propose_rules({{"norm_weight", {4}}, {"norm_bias", {5}}}, {{"n_weight", {4}}, {"n_bias", {5}}}),
            Texts{R"~({"from":"n_(weight|bias)","to":"norm_$1"})~"});
}

TEST(RuleProposals, FusedBiasesHaveTheirPartsToo) {
  const std::vector<std::array<const char*, 3>> triples{
      {"q", "k", "v"}, {"query", "key", "value"}, {"q_proj", "k_proj", "v_proj"}};
  for (const auto& [q, k, v] : triples) {
    std::vector<NamedShape> given;
    for (const char* name : {v, q, k}) {
      given.push_back({str("l.3.", name, ".weight"), {4, 5}});
      given.push_back({str("l.3.", name, ".bias"), {4}});
    }
    const Texts rules = propose_rules({{"b.3.qkv.weight", {12, 5}}, {"b.3.qkv.bias", {12}}}, given);
    const std::string from = R"~({"from":"l\\.(\\d+)\\.)~", to = R"~(\\.(weight|bias)","to":"b.$1.qkv.$2","part":[)~";
    EXPECT_EQ(rules, (Texts{from + q + to + "0,3]}", from + k + to + "1,3]}", from + v + to + "2,3]}"}));
  }
  EXPECT_TRUE(propose_rules({{"qkv", {12}}}, {{"q", {4}}, {"k", {4}}}).empty()) << "v is missing";
  EXPECT_TRUE(propose_rules({{"qkv", {13}}}, {{"q", {4}}, {"k", {4}}, {"v", {4}}}).empty()) << "no multiple of three";
  EXPECT_TRUE(propose_rules({{"qkv", {}}}, {{"q", {4}}, {"k", {4}}, {"v", {4}}}).empty());
}

TEST(RuleProposals, NumbersAreGroupsInTheirOrder) {
  EXPECT_EQ(propose_rules({{"stages.1.blocks.2.x", {3}}, {"stages.10.blocks.4.x", {3}}},
                          {{"s.1.2.y", {3}}, {"s.10.4.y", {3}}}),
            Texts{R"({"from":"s\\.(\\d+)\\.(\\d+)\\.y","to":"stages.$1.blocks.$2.x"})"});
  EXPECT_EQ(propose_rules({{"a.1x.b", {3}}}, {{"c.2y.b", {3}}}), Texts{R"({"from":"c\\.2y\\.b","to":"a.1x.b"})"});
}

TEST(RuleProposals, SharedPartsOfNamesCountBeforeEdits) {
  EXPECT_EQ(propose_rules({{"blocks.norm", {3}}}, {{"blocks.narm", {3}}, {"x.norm.of.all.blocks", {3}}}),
            Texts{R"({"from":"x\\.norm\\.of\\.all\\.blocks","to":"blocks.norm"})"});
  EXPECT_EQ(propose_rules({{"norm", {3}}}, {{"long_name_of_x", {3}}, {"narm", {3}}}),
            Texts{R"({"from":"narm","to":"norm"})"});
  EXPECT_EQ(propose_rules({{"norm", {3}}}, {{"narm", {3}}, {"nurm", {3}}}), Texts{R"({"from":"narm","to":"norm"})"})
      << "the first of equal ones";
}

TEST(RuleProposals, DropsAreProposedOnlyWhereNothingIsMissing) {
  EXPECT_EQ(propose_rules({}, {{"b.0.x", {3}}, {"b.1.x", {3}}, {"c", {2}}}),
            (Texts{R"({"from":"b\\.(\\d+)\\.x","drop":true})", R"({"from":"c","drop":true})"}));
  EXPECT_TRUE(propose_rules({{"m", {7}}}, {{"b", {3}}}).empty());
  EXPECT_TRUE(propose_rules({{"m", {7}}}, {}).empty());
  EXPECT_TRUE(propose_rules({}, {}).empty());
}

// A rule would give the mask, or the weight without the norm, for the weight.
TEST(RuleProposals, AWeightInPartsGetsAdviceInsteadOfRules) {
  const std::vector<NamedShape> weight{{"head.weight", {5, 4}}};
  struct Case {
    std::vector<NamedShape> extra;
    const char* advice;
  };
  const Case cases[] = {
      {{{"head.weight_mask", {5, 4}}, {"head.weight_orig", {5, 4}}},
       "head.weight_mask: pruned weights; before saving, call torch.nn.utils.prune.remove()"},
      {{{"head.weight_g", {5, 1}}, {"head.weight_v", {5, 4}}},
       "head.weight_g: weight-normalised weights; before saving, call torch.nn.utils.remove_weight_norm()"},
      {{{"head.weight_orig", {5, 4}}, {"head.weight_u", {5}}, {"head.weight_v", {4}}},
       "head.weight_orig: spectrally normalised weights; before saving, call torch.nn.utils.remove_spectral_norm()"},
      {{{"head.parametrizations.weight.original0", {5, 1}}, {"head.parametrizations.weight.original1", {5, 4}}},
       "head.parametrizations.weight.original0: parametrised weights; before saving, call "
       "torch.nn.utils.parametrize.remove_parametrizations()"},
      {{{"head.base_layer.weight", {5, 4}}, {"head.lora_A.default.weight", {2, 4}}},
       "head.base_layer.weight: LoRA weights; before saving, call PEFT's merge_and_unload()"}};
  for (const Case& one : cases) {
    EXPECT_EQ(advise_merging(weight, one.extra), Texts{one.advice});
    EXPECT_TRUE(propose_rules(weight, one.extra).empty()) << one.advice;
  }
  // A part alone is a name like others.
  for (const char* name : {"head.weight_mask", "head.weight_v", "head.weight_orig"}) {
    EXPECT_TRUE(advise_merging(weight, {{name, {5, 4}}}).empty()) << name;
    EXPECT_EQ(propose_rules(weight, {{name, {5, 4}}}).size(), 1u) << name;
  }
}

TEST(RuleProposals, PartsThatNoParameterNeedsAreDroppedButNotUpdates) {
  EXPECT_EQ(propose_rules({}, {{"last.weight_g", {5, 1}}, {"last.weight_v", {5, 4}}}),
            (Texts{R"({"from":"last\\.weight_g","drop":true})", R"({"from":"last\\.weight_v","drop":true})"}));
  const std::vector<NamedShape> updates{{"qkv.lora_A", {2, 4}},
                                        {"qkv.lora_B", {12, 2}}};  // loralib's, beside qkv.weight
  EXPECT_TRUE(propose_rules({}, updates).empty());
  EXPECT_EQ(advise_merging({}, updates).size(), 1u);
}

// The commonest head for fine-tuning is nn.Sequential(Dropout, Linear).
TEST(RuleProposals, TheGivenNameMayHaveMoreNumbers) {
  const Texts rules =
      propose_rules({{"head.weight", {5, 4}}, {"head.bias", {5}}}, {{"head.1.weight", {5, 4}}, {"head.1.bias", {5}}});
  EXPECT_EQ(rules, Texts{R"~({"from":"head\\.(\\d+)\\.(weight|bias)","to":"head.$2"})~"});
  EXPECT_EQ(renamed(rules, "head.1.weight"), "head.weight");
  EXPECT_EQ(renamed(rules, "head.1.bias"), "head.bias");
}

// A rule that gives other numbers leaves parameters missing.
TEST(RuleProposals, OtherNumbersDoNotFit) {
  EXPECT_TRUE(
      propose_rules({{"blocks.0.x", {8}}, {"blocks.1.x", {8}}}, {{"layers.1.x", {8}}, {"layers.2.x", {8}}}).empty());
  EXPECT_TRUE(propose_rules({{"blocks.0.mlp.x", {8}}}, {{"blocks.0.mlp.3.x", {8}}}).empty());
  EXPECT_TRUE(propose_rules({{"blocks.0.x", {8}}}, {{"first.x", {8}}}).empty());
}

TEST(RuleProposals, NamesWithoutACommonWordDoNotFit) {
  EXPECT_TRUE(propose_rules({{"head.bias", {8}}}, {{"running_mean", {8}}}).empty());
  EXPECT_EQ(propose_rules({{"pos_embed", {8}}}, {{"positional_embedding", {8}}}).size(), 1u) << "words may be cut";
}

// They are another parameter of the model, or say that its configuration is another one.
TEST(RuleProposals, NamesOfParametersAreNeitherRenamedNorDropped) {
  EXPECT_TRUE(
      propose_rules({{"norm.weight", {8}}, {"norm.bias", {8}}}, {{"fc_norm.weight", {8}}, {"fc_norm.bias", {8}}})
          .empty());
  EXPECT_TRUE(
      propose_rules({{"blocks.0.attn.proj.bias", {8}}, {"blocks.0.norm2.bias", {8}}}, {{"blocks.0.norm2.bias", {8}}})
          .empty());
  EXPECT_TRUE(
      propose_rules({}, {{"blocks.0.ls1.gamma", {8}}, {"attn_pool.q.weight", {8, 8}}, {"head.bias", {5}}}).empty());
}

TEST(RuleProposals, NothingOfALayerIsDropped) {
  EXPECT_TRUE(
      propose_rules({}, {{"blocks.2.adapter.up", {8}}, {"vit.encoder.layer.2.x", {8}}, {"layers.7.x", {8}}}).empty());
  EXPECT_EQ(propose_rules({}, {{"decoder.layers.2.x", {8}}}).size(), 1u);
}

TEST(RuleProposals, OtherFormsOfWeightsGetAdvice) {
  const std::pair<std::vector<NamedShape>, const char*> cases[] = {
      {{{"head.original_module.weight", {5, 4}}, {"head.modules_to_save.default.weight", {5, 4}}},
       "head.original_module.weight: LoRA weights; before saving, call PEFT's merge_and_unload()"},
      {{{"blocks.0._flat_param", {900}}},
       "blocks.0._flat_param: FSDP's flat weights; save the state dict with StateDictType.FULL_STATE_DICT"},
      {{{"head.scale", {}}, {"head.zero_point", {}}},
       "head.scale: PyTorch's quantised weights; save the model before its quantisation"}};
  for (const auto& [extra, advice] : cases) {
    EXPECT_EQ(advise_merging({{"head.weight", {5, 4}}}, extra), Texts{advice});
    EXPECT_TRUE(propose_rules({{"head.weight", {5, 4}}}, extra).empty()) << advice;
  }
}

TEST(RuleProposals, CharactersOfExpressionsAreQuoted) {
  EXPECT_EQ(propose_rules({}, {{"a.[](){}*+?^$|\\/b", {3}}}),
            Texts{R"({"from":"a\\.\\[\\]\\(\\)\\{\\}\\*\\+\\?\\^\\$\\|\\\\\\/b","drop":true})"});
}

}  // namespace
}  // namespace vitrail::weights
