// SPDX-License-Identifier: Apache-2.0
// Settings that replace fields of a recipe, the differences of two recipes, and what the command line replaces.
#include <cstdlib>

#include "tests/train/segment_fixture.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"

namespace vitrail::train {
namespace {

std::string applied(const std::string& json, const std::string& setting) {
  auto value = nlohmann::ordered_json::parse(json);
  apply_override(value, setting);
  return value.dump();
}

TEST(ApplyOverride, SetsTheValueAtItsPath) {
  const std::vector<std::array<const char*, 3>> cases{{R"({"a": 1})", "a=2", R"({"a":2})"},
                                                      {R"({"a": 1})", "b=2", R"({"a":1,"b":2})"},
                                                      {R"({"a": {"b": 1, "c": 2}})", "a.c=3", R"({"a":{"b":1,"c":3}})"},
                                                      {"{}", "a.b.c=true", R"({"a":{"b":{"c":true}}})"},
                                                      {R"({"a": null})", "a.b=1", R"({"a":{"b":1}})"},
                                                      {"null", "a=1", R"({"a":1})"},
                                                      {"{}", "a=text", R"({"a":"text"})"},
                                                      {"{}", "a=", R"({"a":""})"},
                                                      {"{}", "a=b=c", R"({"a":"b=c"})"},
                                                      {"{}", "a=x.y=1", R"({"a":"x.y=1"})"},
                                                      {"{}", "a=[1, 2]", R"({"a":[1,2]})"},
                                                      {"{}", "a=\"2\"", R"({"a":"2"})"},
                                                      {"{}", "a=null", R"({"a":null})"},
                                                      {"{}", "a=1 2", R"({"a":"1 2"})"},
                                                      {"{}", " a=1", R"({" a":1})"}};
  for (const auto& [json, setting, expected] : cases) EXPECT_EQ(applied(json, setting), expected) << setting;
}

TEST(ApplyOverride, RefusesWhatIsNoSetting) {
  const auto refusal = [](const std::string& json, const std::string& setting) {
    return error_of([&] { applied(json, setting); });
  };
  for (const char* setting : {"a", "=1", "", "a..b=1", ".a=1", "a.=1", ".=1"}) {
    EXPECT_EQ(refusal("{}", setting), str("--set: expected key.path=value, got \"", setting, "\""));
  }
  EXPECT_EQ(refusal(R"({"a": 3})", "a.b=1"), "--set a.b=1: expected an object around \"b\", got 3");
  EXPECT_EQ(refusal(R"({"a": {"b": [1]}})", "a.b.c=1"), "--set a.b.c=1: expected an object around \"c\", got [1]");
  EXPECT_EQ(refusal("[]", "a=1"), "--set a=1: expected an object around \"a\", got []");
  std::string path = "k";
  for (int i = 1; i < 20; ++i) path += ".k";
  EXPECT_TRUE(applied("{}", path + "=7").starts_with(R"({"k":{"k":{)"));  // 20 keys
  EXPECT_EQ(refusal("{}", path + ".k=7"), "--set: expected a path of at most 20 keys, got a longer one");
}

TEST(RecipeDifferences, AreSortedByPathWithBothValues) {
  const auto lines = recipe_differences(R"({"z": 1, "b": {"c": 1, "d": [1, 2], "same": 3}, "gone": "x"})",
                                        R"({"z": 2, "b": {"c": 1.5, "d": [1], "same": 3}, "new": {"e": null}})");
  EXPECT_EQ(lines, (std::vector<std::string>{"b.c: 1 → 1.5", "b.d: [1,2] → [1]", "gone: \"x\" → nothing",
                                             "new.e: nothing → null", "z: 1 → 2"}));
  EXPECT_TRUE(recipe_differences("{}", "{}").empty());
  EXPECT_EQ(recipe_differences("1", "2"), (std::vector<std::string>{": 1 → 2"}));
}

TEST(RecipeDifferences, OfFieldsWithoutEffectAreNone) {
  const std::string ignored = R"({"checkpoint": {"every_steps": 1, "every_minutes": 1},
      "data": {"workers": 1, "in_flight": 1, "keep_decoded_mb": 1}, "log_every": 1,
      "loss": {"distillation": {"cache": "a"}}, "segment": {"cache": "a"}})";
  EXPECT_TRUE(recipe_differences(ignored, "{}").empty());
  for (const char* json : {R"({"workers": 1})", R"({"data": {"exif": true}})", R"({"loss": {"cache": 1}})",
                           R"({"checkpoint": {"every": 1}})", R"({"cache": "a"})"}) {
    EXPECT_EQ(recipe_differences(json, "{}").size(), 1u) << json;
  }
}

TEST(DatasetSettings, ReplaceThePathsAndUnsetTheRest) {
  const fs::path images = make_images(1, 1);
  const auto expected = [](const fs::path& train, const std::string& val, const std::string& test) {
    return std::vector<std::string>{"data.train=\"" + train.string() + "\"",
                                    "data.val=\"" + val + "\"",
                                    "data.test=\"" + test + "\"",
                                    "data.train_split=\"\"",
                                    "data.val_split=\"\"",
                                    "data.test_split=\"\"",
                                    "data.holdout=null"};
  };
  EXPECT_EQ(dataset_settings(images.string()), expected(images, "", images.string()));
  EXPECT_EQ(dataset_settings((images / "train").string()), expected(images / "train", "", ""));
  fs::rename(images / "test", images / "val");
  EXPECT_EQ(dataset_settings(images.string()), expected(images, images.string(), ""));
}

TEST(DatasetSettings, OfMasksFollowTheFoldersOfSplits) {
  const fs::path instances = make_instances(1, 1);
  const auto values = [&] {
    const Recipe recipe =
        parse_recipe(tiny_segment_recipe("other"), "r.json", dataset_settings(instances.string(), "segment"));
    return std::array{recipe.data.train, recipe.data.val, recipe.data.test};
  };
  const std::string path = instances.string();
  EXPECT_EQ(values(), (std::array<std::string, 3>{path, path, ""}));
  fs::rename(instances / "val", instances / "test");
  EXPECT_EQ(values(), (std::array<std::string, 3>{path, "", path}));
  write_file(instances / "val", "a file");
  EXPECT_EQ(values()[1], "");
}

TEST(StartSettings, NameTheModelAndUnsetItsFiles) {
  EXPECT_EQ(start_settings("a \"b\""),
            (std::vector<std::string>{R"(model.init="a \"b\"")", "model.config=\"\"", "model.key_map=\"\""}));
  EXPECT_EQ(error_of([] { start_settings("m\xE4"); }),
            "model.init: expected a path in UTF-8 (rename the file), got 'm\\xE4'");
}

TEST(RecipeObjective, IsReadFromAFileWithoutTheRest) {
  const fs::path file = testing::scratch_folder() / "r.json";
  const auto objective = [&](const char* text) {
    write_file(file, text);
    return recipe_objective(file);
  };
  EXPECT_EQ(objective(R"({"objective": "segment"})"), "segment");
  EXPECT_EQ(objective(R"({"objective": "anything"})"), "anything");
  EXPECT_EQ(objective("{}"), "classify");
  EXPECT_EQ(objective(R"({"objective": 3})"), "classify");
  EXPECT_EQ(objective("[1]"), "classify");
  EXPECT_TRUE(contains(error_of([&] { objective("{"); }), file.string() + ": expected JSON"));
}

TEST(FindDataset, TellsHowToFetchTheKnownOnes) {
  ::setenv("VITRAIL_HOME", testing::source("").c_str(), 1);
  const std::string mnist = error_of([] { find_dataset("nowhere/mnist"); });
  const std::string other = error_of([] { find_dataset("nowhere/mnist2"); });
  ::unsetenv("VITRAIL_HOME");
  const std::string expected = "a dataset (a recipe takes another one with --data PATH), got nothing at this path";
  EXPECT_TRUE(mnist.starts_with("nowhere/mnist: expected " + expected + "; `")) << mnist;
  EXPECT_TRUE(mnist.ends_with("get-data mnist nowhere/mnist` fetches it")) << mnist;
  EXPECT_EQ(other, "nowhere/mnist2: expected " + expected);
}

TEST(SegmentRecipe, ListsAllSettingsOfClassification) {
  const std::string message = error_of([] {
    parse_recipe(
        tiny_segment_recipe("x"), "r.json",
        {"augment.mixup=0.1", "augment.flip=alternate", "token_drop={}", "loss.label_smoothing=0.1",
         "model.linear_probe=true", "model.init=m", "model.freeze=[]", "data.preset=cifar10",
         "data.unreadable=leave_out", "data.balance=true", "segment.focal_gamma=0.5", "segment.decoder_dim=24"});
  });
  const std::vector<std::string> lines{
      "r.json: invalid recipe:",
      "data.unreadable: expected \"error\" or \"skip\" together with mixup or cutmix, got \"leave_out\"",
      "augment: expected only \"flip\" for the objective \"segment\", got others",
      "augment.flip: expected \"none\" or \"random\", got \"alternate\"",
      "token_drop: expected null for the objective \"segment\", got an object",
      "loss: expected nothing for the objective \"segment\", whose losses are in \"segment\", got other settings",
      "model.linear_probe: expected false for the objective \"segment\", got true",
      "data: expected no preprocessing for the objective \"segment\", which resizes the long side, got some",
      "data.unreadable: expected \"error\" or \"skip\" for the objective \"segment\", got \"leave_out\"",
      "data: expected neither balance, folds nor retrain for the objective \"segment\", got one",
      "model: expected only init, freeze, config and key_map together with init, got an architecture",
      "segment.focal_gamma: expected 0 or at least 1, got 0.5",
      "segment.decoder_dim: expected a multiple of 16, which the decoder's 8 heads divide, got 24"};
  std::string expected;
  for (const std::string& line : lines) expected += (expected.empty() ? "" : "\n  ") + line;
  EXPECT_EQ(message, expected);
  for (const char* fine : {"segment.focal_gamma=0", "segment.focal_gamma=1", "segment.decoder_dim=48"})
    EXPECT_NO_THROW(parse_recipe(tiny_segment_recipe("x"), "r.json", {fine})) << fine;
}

TEST(SegmentRecipe, RefusesEachSettingOfTheLoss) {
  for (const char* setting : {"loss.name=bce", "loss.label_smoothing=0.1", "loss.bce_threshold=0.5",
                              "loss.bce_sum=true", "loss.class_weighting=inverse_frequency",
                              "loss.class_weights=[1, 2]", R"(loss.distillation={"teacher": "t"})"}) {
    const std::string message = error_of([&] { parse_recipe(tiny_segment_recipe("x"), "r.json", {setting}); });
    EXPECT_TRUE(contains(message, "loss: expected nothing for the objective \"segment\"")) << setting << message;
  }
}

}  // namespace
}  // namespace vitrail::train
