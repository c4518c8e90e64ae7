// SPDX-License-Identifier: Apache-2.0
// Key maps that build on a family, and rows that a rule skips.
#include <gtest/gtest.h>

#include "tests/weights/support.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint_params_internal.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::weights {
namespace {

TEST(KeyMap, TheRulesOfABaseFollowItsOwn) {
  const KeyMap map = KeyMap::parse(R"~({"name": "test", "base": "dinov2_hub", "detect": ["mine"],
                                        "rules": [{"from": "blocks\\.(\\d+)\\.mlp\\.w3\\.bias", "to": "own.$1"}]})~",
                                   "map.json");
  EXPECT_EQ(map.match("blocks.4.mlp.w3.bias").native, "own.4");
  EXPECT_EQ(map.match("blocks.4.mlp.w3.weight").native, "blocks.4.mlp.fc2.weight");
  EXPECT_TRUE(map.match("mask_token").dropped());
  EXPECT_EQ(map.model_args(), KeyMap::builtin("dinov2_hub").model_args());
  EXPECT_TRUE(map.recognises({"mine"})) << "not those of the base";
  EXPECT_EQ(KeyMap::builtin("huggingface_deit_teacher").match_module("deit.encoder.layer.1").native, "blocks.1");
  EXPECT_NE(map_error(R"({"name": "test", "base": "mine", "rules": []})").find("expected one of "), std::string::npos);
}

TEST(KeyMap, TheRulesOfABaseMayBeBehindAPrefix) {
  const auto map_of = [](const std::string& prefix) {
    return R"~({"name": "test", "base": "dinov2_hub", "base_prefix": )~" + prefix +
           R"~(, "rules": [{"from": "head\\.(.*)", "to": "own.$1"}]})~";
  };
  const KeyMap map = KeyMap::parse(map_of(R"(["net\\.", "backbone."])"), "map.json");
  EXPECT_EQ(map.match("net.blocks.4.mlp.w3.weight").native, "backbone.blocks.4.mlp.fc2.weight");
  EXPECT_EQ(map.match("net.cls_token").native, "backbone.cls_token") << "a name without a rule";
  EXPECT_TRUE(map.match("net.mask_token").dropped());
  EXPECT_FALSE(map.match("mask_token").dropped()) << "without the prefix";
  EXPECT_EQ(map.match("blocks.4.mlp.w3.weight").rule, nullptr);
  EXPECT_EQ(map.match("head.bias").native, "own.bias");
  const KeyMap both = KeyMap::parse(map_of(R"([["net\\.", "backbone."], ["head\\.own_", "decoder."]])"), "map.json");
  EXPECT_EQ(both.match("net.blocks.4.mlp.w3.weight").native, "backbone.blocks.4.mlp.fc2.weight");
  EXPECT_EQ(both.match("head.own_blocks.4.mlp.w3.weight").native, "own.own_blocks.4.mlp.w3.weight") << "its own first";
  const KeyMap second = KeyMap::parse(map_of(R"([["net\\.", "backbone."], ["own_", "decoder."]])"), "map.json");
  EXPECT_EQ(second.match("own_blocks.4.mlp.w3.weight").native, "decoder.blocks.4.mlp.fc2.weight");
  EXPECT_EQ(second.match("own_cls_token").native, "decoder.cls_token");
  for (const char* wrong :
       {R"("net")", R"(["net"])", R"(["net", 1])", R"([["a", "b"], ["c"]])", R"([["a", "b"], "c"])"})
    EXPECT_NE(map_error(map_of(wrong)).find("\"base_prefix\" as [\"old\", \"new\"]"), std::string::npos) << wrong;
}

TEST(KeyMap, ItsOwnModelArgsReplaceThoseOfItsBase) {
  ASSERT_NE(KeyMap::builtin("dinov2_hub").model_args(), "");
  const auto args = [](const std::string& own) {
    return KeyMap::parse(R"({"name": "test", "base": "dinov2_hub", "rules": [])" + own + "}", "map.json").model_args();
  };
  EXPECT_EQ(args(""), KeyMap::builtin("dinov2_hub").model_args());
  EXPECT_EQ(args(R"(, "model_args": {"img_size": 42})"), R"({"img_size":42})");
}

TEST(KeyMap, RowsInFrontOfATableAreSkipped) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "table", "to": "pos_embed", "skip": 2,
                                                 "rearrange": "n d -> 1 n d"})~"),
                                   "map.json");
  CheckpointParams params(checkpoint_of({{"table", Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})}}), map);
  const Tensor rows = params.get("pos_embed", {1, 1, 2}, {});
  params.finish();
  EXPECT_EQ(rows.data<float>()[0], 5);
  EXPECT_EQ(rows.data<float>()[1], 6);
  CheckpointParams none(checkpoint_of({{"table", Tensor::zeros({2, 2})}}), map);
  none.get("pos_embed", {1, 1, 2}, {});
  EXPECT_THROW(none.finish(), Error);
  EXPECT_NE(map_error(map_with(R"({"from": "a", "to": "b", "skip": -1})")).find("a number of rows"), std::string::npos);
}

TEST(KeyMap, RowsOfATableCanBeChosen) {
  const KeyMap map = KeyMap::parse(map_with(R"({"from": "table", "to": "latent", "skip": 1, "rows": 1})"), "map.json");
  CheckpointParams params(checkpoint_of({{"table", Tensor::from<float>({3, 2}, {1, 2, 3, 4, 5, 6})}}), map);
  const Tensor rows = params.get("latent", {1, 2}, {});
  params.finish();
  ASSERT_EQ(rows.shape(), (Shape{1, 2}));
  EXPECT_EQ(rows.data<float>()[0], 3);
  EXPECT_EQ(rows.data<float>()[1], 4);
  CheckpointParams few(checkpoint_of({{"table", Tensor::zeros({1, 2})}}), map);
  few.get("latent", {1, 2}, {});
  EXPECT_THROW(few.finish(), Error);
  EXPECT_NE(map_error(map_with(R"({"from": "a", "to": "b", "rows": -1})")).find("\"rows\" as a number of rows"),
            std::string::npos);
}

}  // namespace
}  // namespace vitrail::weights
