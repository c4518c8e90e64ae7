// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/key_map.h"

#include <gtest/gtest.h>

#include "tests/support/errors.h"
#include "tests/support/messages.h"
#include "tests/support/paths.h"
#include "tests/weights/support.h"
#include "vitrail/base/error.h"
#include "vitrail/weights/checkpoint_params_internal.h"
#include "vitrail/weights/key_pattern_internal.h"

namespace vitrail::weights {
namespace {

namespace fs = std::filesystem;

Checkpoint open_model(const std::string& name) {
  const fs::path folder = testing::fixture("models/" + name);
  for (const char* file :
       {"model.safetensors", "model.pth", "model_legacy.pth", "model.npz", "open_clip_model.safetensors"}) {
    if (fs::exists(folder / file)) return Checkpoint::open(folder / file);
  }
  throw Error(folder.string() + ": no weights");
}

TEST(KeyMap, TheFirstRuleThatMatchesTheCompleteKeyApplies) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "layer\\.(\\d+)\\.(w|b)", "to": "blocks.$1.$2"},
                                               {"from": "layer\\..*", "drop": true})~"),
                                   "map.json");
  EXPECT_EQ(map.match("layer.12.w").native, "blocks.12.w");
  EXPECT_EQ(map.match("layer.12.b").rule, &map.rules()[0]);
  EXPECT_TRUE(map.match("layer.12.wide").dropped());
  EXPECT_EQ(map.match("a.layer.12.w").native, "a.layer.12.w");
  EXPECT_EQ(map.match("a.layer.12.w").rule, nullptr);
}

TEST(KeyMap, SmallCountsAreAllowed) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "l(\\d{1,2})\\.(w{2,})", "to": "$1.$2"})~"), "map.json");
  EXPECT_EQ(map.match("l12.www").native, "12.www");
  EXPECT_EQ(map.match("l123.www").rule, nullptr);
}

TEST(KeyMap, AVeryLongKeyMatchesNothing) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "a*", "to": "b"})~"), "map.json");
  EXPECT_EQ(map.match(std::string(1000000, 'a')).rule, nullptr);
  EXPECT_EQ(map.match(std::string(500, 'a')).native, "b");
}

TEST(KeyMap, MatchingDoesNotBacktrack) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "(a+)+(a|a)*b", "to": "b"})~"), "map.json");
  EXPECT_EQ(map.match(std::string(500, 'a')).rule, nullptr);  // exponential for a backtracking matcher
}

// Nested look-ahead takes time exponential in its depth.
TEST(KeyMap, ExpressionsWhoseMatchingTimeIsNotLinearAreErrors) {
  const auto error_for = [](const std::string& pattern) {
    return map_error(map_with("{\"from\": \"" + pattern + "\", \"to\": \"b\"}"));
  };
  for (const char* pattern : {"(?:(?!(?:(?!(?:(?!.*b)a)*b)a)*b)a)*", "a(?=b)b", "(?!a).*"})
    EXPECT_NE(error_for(pattern).find("without look-ahead"), std::string::npos) << pattern;
  EXPECT_NE(error_for("(a)\\\\1").find("without back-references"), std::string::npos);
  std::string groups;
  for (int i = 0; i < 16; ++i) groups += "(a)(?:b)*";
  EXPECT_EQ(error_for(groups), "no error");
  EXPECT_NE(error_for(groups + "(a)").find("at most 16 groups"), std::string::npos);
  EXPECT_EQ(error_for("[(?=][(?!{99}]{3}\\\\("), "no error") << "brackets in classes and escaped ones";
}

TEST(KeyMap, TheLargestPatternMatchesTheLongestKey) {
  std::string part;
  for (int i = 0; i < 12; ++i) part += "(a*)";
  while (part.size() + 12 < 512) part += "a*";
  const KeyMap map = KeyMap::parse(map_with("{\"from\": \"(?:" + part + "){20}b?\", \"to\": \"b\"}"), "map.json");
  EXPECT_EQ(map.match(std::string(512, 'a')).native, "b");
  EXPECT_EQ(map.match("aac").rule, nullptr);
}

TEST(KeyMap, TheSizeOfAllPatternsAndOfNamesIsLimited) {
  const auto rules = [](size_t count, const std::string& from, const std::string& to) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += str(i > 0 ? "," : "", "{\"from\": \"", from, "\", \"to\": \"", to, "\"}");
    return map_with(text);
  };
  const std::string from(128, 'a'), counted = std::string(124, 'a') + "{20}";
  EXPECT_EQ(map_error(rules(512, from, "b")), "no error");
  EXPECT_NE(map_error(rules(513, from, "b")).find("at most 65536 characters in all patterns"), std::string::npos);
  EXPECT_EQ(map_error(rules(25, counted, "b")), "no error");
  EXPECT_NE(map_error(rules(26, counted, "b")).find("rule 26"), std::string::npos);

  EXPECT_NE(map_error(rules(1, "a", std::string(513, 'b'))).find("\"to\" of at most 512"), std::string::npos);
  std::string repeated;
  for (int i = 0; i < 41; ++i) repeated += "$1";
  const KeyMap map = KeyMap::parse(rules(1, "(a*)", repeated), "map.json");
  EXPECT_EQ(map.match(std::string(99, 'a')).native.size(), 41u * 99);
  EXPECT_THROW(map.match(std::string(100, 'a')), Error);
}

// The literal that is searched before the expression must not come from an escape or a class.
TEST(KeyPattern, EscapesAndClassesMatchAsInTheExpression) {
  const auto matches = [](const std::string& pattern, const std::string& key) {
    return KeyPattern(pattern, "map.json").replace(key, "").has_value();
  };
  EXPECT_TRUE(matches(R"~(\x41\u0042c)~", "ABc"));
  EXPECT_TRUE(matches(R"~([[:alpha:]]x)~", "ax"));
  EXPECT_TRUE(matches(R"~([^[:digit:]_]]x)~", "a]x"));
  EXPECT_TRUE(matches(R"~([[.a.]]b)~", "ab"));
  EXPECT_FALSE(matches(R"~([[:digit:]]x)~", "ax"));
  EXPECT_TRUE(matches("ac+??", "a")) << "libstdc++ accepts several quantifiers in a row";
}

TEST(KeyPattern, TheRequiredLiteralIsPartOfEveryMatch) {
  EXPECT_EQ(required_literal(R"~((?:vit\.)?(?:encoder\.layer|layers)\.(\d+)\.mlp\.fc1\.(weight|bias))~"), ".mlp.fc1.");
  EXPECT_EQ(required_literal("cls_token"), "cls_token");
  EXPECT_EQ(required_literal("abc?d"), "ab");
  EXPECT_EQ(required_literal("abcx{0,2}d"), "abc");
  EXPECT_EQ(required_literal("long_one|b"), "");
  EXPECT_EQ(required_literal(R"~(a[)(|]bc)~"), "bc");
  EXPECT_EQ(required_literal(R"~(\w+(a(b)c)d)~"), "d");
  EXPECT_EQ(required_literal(".*"), "");
}

TEST(KeyMap, InvalidMapsAreErrorsThatNameTheRule) {
  const auto has = [](const std::string& error, const std::string& part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(error.rfind("map.json", 0), 0u) << error;
  };
  has(map_error("{"), "JSON");
  has(map_error("[]"), "object");
  has(map_error(R"~({"rules": []})~"), "\"name\"");
  has(map_error(R"~({"name": "a"})~"), "\"rules\"");
  has(map_error(R"~({"name": "a", "rules": [], "else": 1})~"), "\"else\"");
  has(map_error(R"~({"name": "a", "rules": [], "detect": [1]})~"), "detect");
  has(map_error(map_with("1")), "rule 1");
  has(map_error(map_with(R"~({"from": "a", "to": "b"}, {"to": "b"})~")), "rule 2: expected \"from\"");
  has(map_error(map_with(R"~({"from": "a"})~")), "rule 1 (\"a\"): expected \"to\"");
  has(map_error(map_with(R"~({"from": "(a", "to": "b"})~")), "rule 1 (\"(a\"): expected a regular expression");
  has(map_error(map_with(R"~({"from": "(a)\\1", "to": "b"})~")), "back-references");
  has(map_error(map_with(R"~({"from": "a{21}", "to": "b"})~")), "multiply to at most 20");
  has(map_error(map_with(R"~({"from": "a{99999999999999999999}", "to": "b"})~")), "multiply to at most 20");
  has(map_error(map_with(R"~({"from": "((a{3}){1,3}){3}", "to": "b"})~")), "multiply to at most 20");
  has(map_error(map_with("{\"from\": \"" + std::string(600, '(') + "\", \"to\": \"b\"}")), "at most 512");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "part": [3, 3]})~")), "\"part\"");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "part": [0.5, 3]})~")), "\"part\"");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "rearrange": "a b"})~")), "rearrange");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "rearrange": "a -> a", "sizes": {"c": 1}})~")), "\"c\"");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "rearrange": "a -> a", "sizes": {"a": 0}})~")), "\"a\"");
  has(map_error(map_with(R"~({"from": "a", "to": ["b", "c"]})~")), "\"split\"");
  has(map_error(map_with(R"~({"from": "a", "to": ["b", "c"], "split": [1]})~")), "\"split\"");
  has(map_error(map_with(R"~({"from": "a", "to": ["b", "c"], "split": [1, 0]})~")), "\"split\"");
  has(map_error(map_with(R"~({"from": "a", "to": ["b", "c"], "split": [1, 64]})~")), "\"split\"");
  has(map_error(map_with(R"~({"from": "a", "to": ["b", 1], "split": [1, 2]})~")), "\"to\"");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "split": [1, 2]})~")), "\"to\" as a list");
  has(map_error(map_with(R"~({"from": "a", "drop": true, "to": "b"})~")), "nothing beside");
  has(map_error(map_with(R"~({"from": "a", "to": "b", "wat": 1})~")), "\"wat\"");
  has(map_error(map_with(R"~({"from": "a", "to": [[[[[[[[[[1]]]]]]]]]]})~")), "nested deeper");
}

TEST(KeyMap, PartsAreConcatenatedInTheirOrder) {
  const auto file = checkpoint_of(
      {{"v.w", Tensor::full({1, 2}, 3)}, {"q.w", Tensor::full({2, 2}, 1)}, {"k.w", Tensor::full({1, 2}, 2)}});
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "q\\.w", "to": "qkv", "part": [0, 3]},
      {"from": "k\\.w", "to": "qkv", "part": [1, 3]}, {"from": "v\\.w", "to": "qkv", "part": [2, 3]})~"),
                                   "map.json");
  CheckpointParams params(file, map);
  const Tensor qkv = params.get("qkv", {4, 2}, {});
  params.finish();
  const std::vector<float> expected{1, 1, 1, 1, 2, 2, 3, 3};
  for (int i = 0; i < 8; ++i) EXPECT_EQ(qkv.data<float>()[i], expected[i]);
}

TEST(KeyMap, ASplitTensorBecomesSeveralInTheGivenProportions) {
  const Tensor in = Tensor::zeros({6, 2});
  for (int i = 0; i < 12; ++i) in.data<float>()[i] = static_cast<float>(i);
  const KeyMap map = KeyMap::parse(
      map_with(R"~({"from": "in_(w|b)", "to": ["q.$1", "kv.$1"], "split": [1, 2]}, {"from": "other", "to": "o"})~"),
      "map.json");
  CheckpointParams params(checkpoint_of({{"in_w", in}, {"other", Tensor::full({1}, 7)}}), map);
  const Tensor q = params.get("q.w", {2, 2}, {}), kv = params.get("kv.w", {4, 2}, {}), other = params.get("o", {1}, {});
  params.finish();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(q.data<float>()[i], static_cast<float>(i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(kv.data<float>()[i], static_cast<float>(4 + i));
  EXPECT_EQ(other.data<float>()[0], 7);
}

TEST(KeyMap, ATensorThatCannotBeSplitIsReportedWithItsShape) {
  const KeyMap map = KeyMap::parse(map_with(R"~({"from": "in", "to": ["q", "kv"], "split": [1, 2]})~"), "map.json");
  CheckpointParams params(checkpoint_of({{"in", Tensor::zeros({4, 2})}}), map);
  params.get("q", {2, 2}, {});
  try {
    params.finish();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("expected a first extent that 3 divides, got [4, 2]"), std::string::npos)
        << error.what();
  }
}

TEST(KeyMap, PartsThatDoNotFitAreReportedWithTheirSource) {
  const std::string rules = R"~({"from": "q", "to": "qkv", "part": [0, 2]}, {"from": "k", "to": "qkv", "part": [1, 2]},
      {"from": "p", "to": "patch", "rearrange": "d (p c) -> d c p", "sizes": {"p": "patch_size"}})~";
  const KeyMap map = KeyMap::parse(map_with(rules), "map.json");
  const auto report = [&](const std::vector<std::pair<std::string, Tensor>>& tensors, const FieldSizes& sizes) {
    try {
      CheckpointParams params(checkpoint_of(tensors), map, sizes);
      for (const auto& [key, tensor] :
           params.has("qkv") ? std::map<std::string, int>{{"qkv", 0}} : std::map<std::string, int>{{"patch", 0}}) {
        params.get(key, {2, 2}, {});
      }
      params.finish();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const Tensor t = Tensor::zeros({1, 2});
  EXPECT_NE(report({{"q", t}}, {}).find("qkv (from q): part 2 of 2 is missing"), std::string::npos)
      << report({{"q", t}}, {});
  EXPECT_NE(report({{"q", t}, {"k", Tensor::zeros({1, 3})}}, {}).find("joins [1, 2] along axis 0"), std::string::npos);
  EXPECT_NE(report({{"q", t}, {"qkv", t}}, {}).find("one tensor for qkv"), std::string::npos);
  EXPECT_NE(report({{"p", t}}, {}).find("the configuration's patch_size"), std::string::npos);
  EXPECT_NE(report({{"p", t}}, {{"patch_size", 3}}).find("\"d (p c) -> d c p\""), std::string::npos);
}

TEST(KeyMap, AModuleMayBeNamedByAnyOfItsParameters) {
  for (const std::string parameter : {"weight", "gamma", "lambda1"}) {
    const KeyMap map = KeyMap::parse(R"~({"name": "own", "rules": [{"from": "a\\.(\\d)\\.scale\\.)~" + parameter +
                                         R"~(", "to": "blocks.$1.ls1.gamma"}]})~",
                                     "map.json");
    EXPECT_EQ(map.match_module("a.2.scale").native, "blocks.2.ls1") << parameter;
    EXPECT_EQ(map.match_module("a.scale").rule, nullptr);
  }
}

TEST(KeyMap, ModulesHaveNativePathsByTheirOwnRulesOrThoseOfTheirWeights) {
  const KeyMap map = KeyMap::parse(
      R"~({"name": "own", "about": "a library", "rules": [{"from": "a\\.(\\d)\\.key\\.(weight|bias)",
          "to": "blocks.$1.attn.qkv.$2", "part": [1, 3]}, {"from": "x\\..*", "drop": true}],
          "modules": [{"from": "a\\.(\\d)\\.act", "to": "blocks.$1.mlp.act"}]})~",
      "map.json");
  EXPECT_EQ(map.about(), "a library");
  EXPECT_EQ(map.match_module("a.2.act").native, "blocks.2.mlp.act");
  const KeyMatch key = map.match_module("a.2.key");
  EXPECT_EQ(key.native, "blocks.2.attn.qkv");
  EXPECT_EQ(key.rule->part, 1);
  EXPECT_EQ(map.match_module("x.pooler").rule, nullptr);
  EXPECT_EQ(map.match_module("a.2").rule, nullptr);
  const auto with_module = [](const std::string& module) {
    return R"({"name": "own", "rules": [], "modules": [)" + module + "]}";
  };
  EXPECT_THROW(KeyMap::parse(with_module(R"({"from": "a", "drop": true})"), "map.json"), Error);
  EXPECT_THROW(KeyMap::parse(with_module(R"({"from": "a"})"), "map.json"), Error);
  EXPECT_THROW(KeyMap::parse(R"({"name": "own", "rules": [], "modules": 3})", "map.json"), Error);
}

TEST(KeyMap, UnknownKeysAreAnErrorThatListsSome) {
  try {
    KeyMap::detect({"conv1.weight", "fc.bias"});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("conv1.weight, fc.bias"), std::string::npos) << text;
    EXPECT_NE(text.find("huggingface_vit"), std::string::npos) << text;
  }
  EXPECT_THROW(KeyMap::builtin("resnet"), Error);
}

TEST(KeyMap, BuiltInFamiliesAreValidAndHaveDetectKeys) {
  for (const std::string& name : KeyMap::builtin_names()) {
    const KeyMap map = KeyMap::builtin(name);
    EXPECT_EQ(map.name(), name);
    EXPECT_FALSE(map.recognises({})) << name;
  }
}

// For each reference model all families that recognise its keys; the first one is detected.
TEST(KeyMap, DetectsTheFamilyOfEveryFixture) {
  const std::map<std::string, std::vector<std::string>> expected{
      {"timm_token", {"timm"}},
      {"timm_pth_bf16", {"timm"}},
      {"dino_hub", {"timm"}},  // the backbone has timm's names
      {"dinov2_hub", {"dinov2_hub", "masked_image_model", "timm"}},
      {"dinov2_hub_chunked", {"dinov2_hub"}},
      {"dinov2_hub_registers", {"dinov2_hub_registers", "dinov2_hub", "masked_image_model", "timm"}},
      {"hf_vit", {"huggingface_vit"}},
      {"hf_vit_model", {"huggingface_vit"}},
      {"hf_vit_new_keys", {"huggingface_vit"}},
      {"hf_deit", {"huggingface_deit"}},
      {"hf_deit_model", {"huggingface_deit", "huggingface_vit"}},
      {"hf_deit_teacher", {"huggingface_deit_teacher", "huggingface_deit"}},
      {"hf_dinov2", {"huggingface_dinov2"}},
      {"hf_dinov2_model", {"huggingface_dinov2"}},
      {"hf_dinov2_swiglu", {"huggingface_dinov2"}},
      {"hf_dinov2_registers", {"huggingface_dinov2_registers"}},
      {"hf_dinov2_registers_model", {"huggingface_dinov2_registers", "huggingface_dinov2"}},
      {"timm_aimv2", {"timm_aimv2", "timm_eva", "timm"}},
      {"hf_aimv2", {"huggingface_aimv2"}},
      {"hf_aimv2_no_head", {"huggingface_aimv2"}},
      {"timm_beit", {"timm_beit", "timm_eva", "timm"}},
      {"timm_beit_shared", {"timm_beit", "timm_eva", "timm"}},
      {"hf_beit", {"huggingface_beit"}},
      {"hf_beit_model", {"huggingface_beit", "huggingface_vit"}},
      {"hf_beit_token", {"huggingface_beit", "huggingface_vit"}},
      {"hf_beit_masked", {"huggingface_beit"}},
      {"hf_data2vec", {"huggingface_beit"}},
      {"hf_data2vec_model", {"huggingface_beit", "huggingface_vit"}},
      {"hf_siglip_vision", {"huggingface_siglip"}},
      {"hf_siglip_no_head", {"huggingface_siglip"}},
      {"hf_siglip_classifier", {"huggingface_siglip_classifier", "huggingface_siglip"}},
      {"hf_siglip", {"huggingface_siglip", "huggingface_text"}},
      {"hf_clip", {"huggingface_clip", "huggingface_text"}},
      {"hf_clip_vision", {"huggingface_clip"}},
      {"hf_clip_classifier", {"huggingface_clip_classifier", "huggingface_clip"}},
      {"open_clip", {"open_clip", "open_clip_text"}},
      {"open_clip_custom_text", {"open_clip", "open_clip_text"}},
      {"open_clip_clipa", {"open_clip", "open_clip_text"}},
      {"open_clip_coca", {"open_clip_coca", "open_clip", "open_clip_text"}},
      {"open_clip_siglip", {"open_clip_timm", "open_clip_text"}},
      {"open_clip_eva02", {"open_clip_timm", "open_clip_text"}},
      {"open_clip_timm_linear", {"open_clip_timm", "open_clip_text"}},
      {"torchvision_vit", {"torchvision"}},
      {"torchvision_vit_old_names", {"torchvision"}},
      {"google_npz", {"google"}},
      {"google_npz_compressed", {"google"}},
      {"seed_000", {"document_000"}},
      {"seed_003", {"document_003"}},
      {"seed_004", {"document_004"}},
      {"torch_encoder_pre_norm", {"torch_encoder"}},
      {"torch_encoder_post_norm", {"torch_encoder"}},
      {"lucidrains_vit", {"vit_pytorch"}},
      {"lucidrains_vit_mean", {"vit_pytorch"}},
      {"lucidrains_fn", {"vit_pytorch_fn", "vit_pytorch_plain"}},
      {"lucidrains_old", {"vit_pytorch_plain"}}};
  for (const auto& [fixture, families] : expected) {
    const std::vector<std::string> keys = open_model(fixture).names();
    std::vector<std::string> matching = KeyMap::builtin_names();
    std::erase_if(matching, [&](const std::string& name) { return !KeyMap::builtin(name).recognises(keys); });
    EXPECT_EQ(matching, families) << fixture;
    EXPECT_EQ(KeyMap::detect(keys).name(), families.front()) << fixture;
  }
}

// A training checkpoint has prefixes and projection heads that are not part of the model.
TEST(KeyMap, ADinoTrainingCheckpointGivesItsBackbone) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const char* key : {"patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.0.norm1.weight"}) {
    tensors.emplace_back(str("module.backbone.", key), Tensor::zeros({1}));
  }
  for (const char* key : {"mlp.0.weight", "mlp.2.bias", "last_layer.weight_g", "last_layer.weight_v"}) {
    tensors.emplace_back(str("module.head.", key), Tensor::zeros({1}));
  }
  Checkpoint backbone = *checkpoint_of(tensors);
  EXPECT_EQ(backbone.strip_model_prefix(), std::vector<std::string>{"backbone."});
  const auto file = std::make_shared<const Checkpoint>(backbone);
  const KeyMap map = KeyMap::detect(file->names());
  EXPECT_EQ(map.name(), "dino_hub");
  EXPECT_EQ(MappedTensors(*file, map, {}).all().size(), 3u);
}

// Compares one element of each rearranged tensor with the file.
TEST(KeyMap, GooglesKernelsAreRearrangedToTheNativeLayout) {
  const auto file = std::make_shared<const Checkpoint>(open_model("google_npz"));
  CheckpointParams params(file, KeyMap::detect(file->names()));
  const Tensor qkv = params.get("blocks.1.attn.qkv.weight", {72, 24}, {}),
               proj = params.get("blocks.1.attn.proj.weight", {24, 24}, {});
  const Tensor patch = params.get("patch_embed.proj.weight", {24, 3, 4, 4}, {}),
               bias = params.get("blocks.1.attn.qkv.bias", {72}, {});
  const std::string block = "Transformer/encoderblock_1/MultiHeadDotProductAttention_1/";
  const Tensor key = file->tensor(block + "key/kernel"),
               value_bias = file->tensor(block + "value/bias");  // [D, H, K], [H, K]
  const Tensor out = file->tensor(block + "out/kernel"),
               kernel = file->tensor("embedding/kernel");  // [H, K, D], [h, w, c, D]
  EXPECT_EQ(qkv.data<float>()[(24 + 2 * 8 + 5) * 24 + 7], key.data<float>()[(7 * 3 + 2) * 8 + 5]);
  EXPECT_EQ(bias.data<float>()[48 + 2 * 8 + 5], value_bias.data<float>()[2 * 8 + 5]);
  EXPECT_EQ(proj.data<float>()[7 * 24 + 2 * 8 + 5], out.data<float>()[(2 * 8 + 5) * 24 + 7]);
  EXPECT_EQ(patch.data<float>()[((7 * 3 + 2) * 4 + 1) * 4 + 3], kernel.data<float>()[((1 * 4 + 3) * 3 + 2) * 24 + 7]);
}

TEST(KeyMap, VitPytorchsPatchesAndTokensAreRearrangedToTheNativeLayout) {
  const auto file = std::make_shared<const Checkpoint>(open_model("lucidrains_vit"));
  CheckpointParams params(file, KeyMap::detect(file->names()), {{"patch_size", 4}});
  const Tensor patch = params.get("patch_embed.proj.weight", {24, 3, 4, 4}, {}),
               norm = params.get("patch_embed.input_norm.bias", {48}, {});
  EXPECT_FALSE(params.get("cls_token", {1, 1, 24}, {}).is_meta());
  EXPECT_FALSE(params.get("pos_embed", {1, 17, 24}, {}).is_meta());
  EXPECT_EQ(patch.data<float>()[((7 * 3 + 2) * 4 + 1) * 4 + 3],
            file->tensor("to_patch_embedding.2.weight").data<float>()[7 * 48 + (1 * 4 + 3) * 3 + 2]);
  EXPECT_EQ(norm.data<float>()[(2 * 4 + 1) * 4 + 3],
            file->tensor("to_patch_embedding.1.bias").data<float>()[(1 * 4 + 3) * 3 + 2]);
}

TEST(KeyMap, AnEmptyClassTokenIsIgnored) {
  const Checkpoint file = open_model("lucidrains_vit_mean");
  EXPECT_EQ(file.info("cls_token").shape, (Shape{0, 24}));
  const MappedTensors mapped(file, KeyMap::detect(file.names()), {{"patch_size", 4}});
  EXPECT_FALSE(mapped.all().contains("cls_token"));
}

// A family whose keys include those of another comes first.
TEST(KeyMap, BuiltInFamiliesAreInTheOrderOfDetection) {
  EXPECT_EQ(KeyMap::builtin_names(), (std::vector<std::string>{"ibot",
                                                               "dino_hub",
                                                               "dinov3_hub",
                                                               "tips_hub",
                                                               "dinov2_hub_registers",
                                                               "dinov2_hub",
                                                               "timm_beit",
                                                               "timm_aimv2",
                                                               "mae",
                                                               "moco_v3",
                                                               "msn",
                                                               "deit3",
                                                               "timm_eva",
                                                               "masked_image_model",
                                                               "timm",
                                                               "huggingface_dinov3_gated",
                                                               "huggingface_dinov3",
                                                               "huggingface_dinov2_registers",
                                                               "huggingface_dinov2",
                                                               "huggingface_internvl",
                                                               "huggingface_beit",
                                                               "huggingface_aimv2",
                                                               "huggingface_siglip_classifier",
                                                               "huggingface_siglip",
                                                               "huggingface_deit_teacher",
                                                               "huggingface_deit",
                                                               "huggingface_vit",
                                                               "huggingface_clip_classifier",
                                                               "huggingface_clip",
                                                               "huggingface_text",
                                                               "beit3",
                                                               "mmpretrain",
                                                               "open_clip_coca",
                                                               "open_clip",
                                                               "open_clip_fc_norm",
                                                               "open_clip_timm",
                                                               "open_clip_text",
                                                               "torchvision",
                                                               "google",
                                                               "document_000",
                                                               "document_003",
                                                               "document_004",
                                                               "torch_encoder",
                                                               "vit_pytorch",
                                                               "vit_pytorch_fn",
                                                               "vit_pytorch_plain",
                                                               "sam",
                                                               "mobile_sam",
                                                               "huggingface_sam",
                                                               "sam2",
                                                               "huggingface_sam2",
                                                               "sam_encoder",
                                                               "timm_sam"}));
}

TEST(KeyMap, AnUnknownFamilyIsAnErrorThatListsThem) {
  std::string names;
  for (const std::string& name : KeyMap::builtin_names()) names += (names.empty() ? "" : ", ") + name;
  EXPECT_EQ(testing::error_of([] { KeyMap::builtin("resnet"); }),
            "key map: expected one of " + names + ", got \"resnet\"");
  const std::string known =
      "key map: expected the keys of a known family (" + names + "); give a key map for others, got ";
  EXPECT_EQ(testing::error_of([] { KeyMap::detect({}); }), known + "a file without tensors");
  EXPECT_EQ(testing::error_of([] {
              KeyMap::detect({"j", "b", "a", "c", "i", "h", "g", "e", "d", "f"});
            }),
            known + "10 keys such as a, b, c, d, e, f, g, h");
  EXPECT_EQ(testing::error_of([] {
              KeyMap::detect({std::string(90, 'x'), "b"});
            }),
            known + "2 keys such as b, " + std::string(80, 'x'));
  EXPECT_EQ(testing::error_of([] { KeyMap::detect({"b"}); }), known + "1 key: b");
}

TEST(KeyMap, RecognisesByOneKeyOfEachList) {
  const KeyMap map = KeyMap::parse(R"({"name": "own", "detect": ["a", ["b", "c"]], "rules": []})", "map.json");
  EXPECT_TRUE(map.recognises({"c", "x", "a"}));
  EXPECT_TRUE(map.recognises({"a", "b"}));
  EXPECT_FALSE(map.recognises({"b", "c"}));
  EXPECT_FALSE(map.recognises({"a"}));
  EXPECT_FALSE(KeyMap::parse(R"({"name": "own", "rules": []})", "map.json").recognises({"a"}));
}

TEST(KeyMap, ASplitKeyMatchesAllItsRules) {
  const KeyMap map = KeyMap::parse(
      map_with(
          R"~({"from": "x\\.(.)", "to": "y.$1"}, {"from": "in\\.(.)", "to": ["q.$1", "", "v.$1"], "split": [2, 1, 3]},
                   {"from": "other", "to": "o"})~"),
      "map.json");
  const auto natives = [&](const std::string& key) {
    std::vector<std::string> names;
    for (const KeyMatch& match : map.match_all(key)) names.push_back(match.dropped() ? "(dropped)" : match.native);
    return names;
  };
  EXPECT_EQ(natives("in.w"), (std::vector<std::string>{"q.w", "(dropped)", "v.w"}));
  EXPECT_EQ(natives("x.w"), std::vector<std::string>{"y.w"});
  EXPECT_EQ(natives("other"), std::vector<std::string>{"o"});
  EXPECT_EQ(natives("unknown"), std::vector<std::string>{"unknown"});
  const std::vector<KeyMatch> matches = map.match_all("in.w");
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(matches[i].rule, &map.rules()[i + 1]);
  EXPECT_EQ(map.match_all("unknown")[0].rule, nullptr);
  EXPECT_FALSE(map.match_all("unknown")[0].dropped());
}

TEST(KeyMap, ANewNameHasAtMost4096Characters) {
  std::string repeated;
  for (int i = 0; i < 16; ++i) repeated += "$1";
  const KeyMap map = KeyMap::parse(map_with("{\"from\": \"(a*)\", \"to\": \"" + repeated + "\"}"), "map.json");
  EXPECT_EQ(map.match(std::string(256, 'a')).native.size(), 4096u);
  EXPECT_ERROR(testing::error_of([&] { map.match(std::string(257, 'a')); }), "map.json: rule 1 (\"(a*)\")", "more");
}

TEST(KeyMap, ModulesCountInTheSizeOfAllPatterns) {
  const auto modules = [](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += (i > 0 ? "," : "") + std::string("{\"from\": \"" + std::string(512, 'a') + "\", \"to\": \"b\"}");
    return text;
  };
  const auto map = [&](size_t rules, size_t of_modules) {
    return R"({"name": "own", "rules": [)" + modules(rules) + R"(], "modules": [)" + modules(of_modules) + "]}";
  };
  EXPECT_EQ(map_error(map(100, 28)), "no error");
  EXPECT_EQ(map_error(map(100, 29)),
            "map.json: module 29 (\"" + std::string(80, 'a') +
                "\"): expected at most 65536 characters in all patterns, counts written out, got "
                "more");
}

TEST(KeyMap, AModulesOwnRuleComesBeforeThatOfItsWeight) {
  const KeyMap map = KeyMap::parse(R"~({"name": "own", "rules": [{"from": "a\\.weight", "to": "of_weight.x"},
      {"from": "b\\.gamma", "to": "of_gamma.y.z"}, {"from": "c\\.weight", "drop": true}, {"from": "c\\.lambda1", "to": "of_lambda.l"}],
      "modules": [{"from": "a", "to": "of_module"}]})~",
                                   "map.json");
  EXPECT_EQ(map.match_module("a").native, "of_module");
  EXPECT_EQ(map.match_module("b").native, "of_gamma.y");
  EXPECT_EQ(map.match_module("c").native, "of_lambda");
  EXPECT_EQ(map.match_module("d").native, "d");
  EXPECT_EQ(map.match_module("d").rule, nullptr);
}

TEST(KeyPattern, TheLimitsOfPatternsAndKeysAreReached) {
  const auto error = [](const std::string& pattern) {
    return testing::error_of([&] { KeyPattern(pattern, "rule 7"); });
  };
  EXPECT_EQ(KeyPattern(std::string(512, 'a'), "rule 7").size(), 512u);
  EXPECT_ERROR(error(std::string(513, 'a')), "rule 7", "513");
  const KeyPattern any("a*", "rule 7");
  EXPECT_EQ(any.replace(std::string(512, 'a'), "x$&y"), "x" + std::string(512, 'a') + "y");
  EXPECT_EQ(any.replace(std::string(513, 'a'), "b"), std::nullopt);
  EXPECT_EQ(KeyPattern("a{20}", "rule 7").size(), 100u);
  EXPECT_EQ(KeyPattern("(a{2}b{5}){2}", "rule 7").size(), 13u * 20);
  EXPECT_EQ(KeyPattern("a{0}b{3,}", "rule 7").size(), 9u * 3);
  EXPECT_EQ(KeyPattern("a{4,12}", "rule 7").size(), 7u * 12) << "the larger one";
  EXPECT_ERROR(error("a{21}"), "rule 7", "\"a{21}\"");
  EXPECT_ERROR(error("a{3}b{7}"), "rule 7", "\"a{3}b{7}\"");
  EXPECT_EQ(error("(a)\\1"), "rule 7: expected a regular expression without back-references, got \"(a)\\1\"");
  EXPECT_EQ(error("(a)\\0"), "rule 7: expected a regular expression without back-references, got \"(a)\\0\"");
  EXPECT_EQ(error("(a)\\9"), "rule 7: expected a regular expression without back-references, got \"(a)\\9\"");
  EXPECT_ERROR(error("a(?=b)"), "rule 7", "\"a(?=b)\"");
  EXPECT_ERROR(error("a(?!b)"), "rule 7", "\"a(?!b)\"");
  std::string groups;
  for (int i = 0; i < 17; ++i) groups += "(a)";
  EXPECT_ERROR(error(groups), "rule 7", "\"" + groups + "\"");
  EXPECT_TRUE(error("(a").starts_with("rule 7: expected a regular expression, got \"(a\" ("));
}

TEST(KeyPattern, GroupsAreSubstituted) {
  const KeyPattern pattern(R"(a\.(\d+)\.(w|b)(?:x)?)", "map.json");
  EXPECT_EQ(pattern.replace("a.12.w", "$2-$1"), "w-12");
  EXPECT_EQ(pattern.replace("a.12.bx", "n.$1.$2"), "n.12.b");
  EXPECT_EQ(pattern.replace("a.12.w", ""), "");
  for (const char* other : {"a.12.wy", "xa.12.w", "a.12.", "a..w", "a.12.w\n", "A.12.w"})
    EXPECT_EQ(pattern.replace(other, "b"), std::nullopt) << other;
}

TEST(KeyPattern, TheRequiredLiteralIsTheLongestRunOutsideOfGroups) {
  const std::pair<const char*, const char*> cases[] = {{"", ""},
                                                       {"abc", "abc"},
                                                       {"ab.cd", "ab"},
                                                       {"ab.cde", "cde"},
                                                       {"ab\\.cd", "ab.cd"},
                                                       {"ab\\/cd", "ab/cd"},
                                                       {"ab\\dcde", "cde"},
                                                       {"^abc$", "abc"},
                                                       {"ab*cd", "cd"},
                                                       {"abcd+e", "abc"},
                                                       {"abc{2}d", "ab"},
                                                       {"abc{2}def", "def"},
                                                       {"abc{2", ""},
                                                       {"ab(cdef)gh", "ab"},
                                                       {"ab(cd)ghi", "ghi"},
                                                       {"a[xyz]bc", "bc"},
                                                       {"a[]xyz]bc", "xyz]bc"},
                                                       {"a\\x41bcd", "bcd"},
                                                       {"a\\u0041bcd", "bcd"},
                                                       {"a\\cAbcd", "bcd"},
                                                       {"a|b", ""},
                                                       {"abc|", ""},
                                                       {"(a|b)cd", "cd"},
                                                       {"ab\\", "ab"}};
  for (const auto& [pattern, want] : cases) EXPECT_EQ(required_literal(pattern), want) << pattern;
}

}  // namespace
}  // namespace vitrail::weights
