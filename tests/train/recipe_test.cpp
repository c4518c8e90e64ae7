// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/recipe.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "tests/train/training_fixture.h"
#include "vitrail/base/installed_files.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/hub/hub.h"
#include "vitrail/models/bundled.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

const char* const kMinimal = R"({"model": "cifar_vit_d192", "data": {"train": "x"}, "epochs": 1})";

TEST(Recipe, AbsentFieldsHaveDefaults) {
  const Recipe recipe = parse_recipe(kMinimal, "r.json");
  EXPECT_EQ(recipe.model.architecture, "cifar_vit_d192");
  EXPECT_EQ(recipe.optimizer.kind, "adamw");
  EXPECT_EQ(recipe.precision, "fp32");
  EXPECT_FALSE(recipe.ema);
  EXPECT_FALSE(recipe.data.holdout);
}

TEST(Recipe, AnUnknownArchitectureGivesItsFamily) {
  const auto problem_of = [](const std::string& name) {
    return error_of(
        [&] { parse_recipe(R"({"model": ")" + name + R"(", "data": {"train": "x"}, "epochs": 1})", "r.json"); });
  };
  EXPECT_TRUE(contains(problem_of("swin_tiny"), "got \"swin_tiny\": a Swin Transformer, which is not supported"));
  EXPECT_TRUE(contains(problem_of("vit_bse_patch16_224"),
                       "model.architecture: expected \"vit\" or a registered name "
                       "(like vit_base_patch16_224, "));
}

TEST(Recipe, AllProblemsAreListedWithTheirPaths) {
  const std::string message = error_of([] {
    parse_recipe(R"({"model": {"depht": 3}, "data": {"train": "x", "workers": -1, "colour": 1}, "epochs": "many",
                     "optimizer": {"name": "adam", "lr": -1}, "augment": {"padded_crop": {"mode": "wrap"},
                     "erasing": {"ratio": [1]}}, "precision": 16, "speed": 1})",
                 "r.json");
  });
  EXPECT_TRUE(contains(message, "r.json")) << message;
  for (const char* path :
       {"model: depht: expected one of the fields", "data.workers: expected an integer from 0",
        "data.colour: expected one of the fields", "epochs: expected an integer",
        "optimizer.name: expected one of \"adamw\"", "optimizer.lr: expected a number of at least 0, got -1",
        "augment.padded_crop.mode: expected one of", "augment.erasing.ratio: expected an array of two numbers",
        "precision: expected one of \"fp32\"", "speed: expected one of the fields"}) {
    EXPECT_TRUE(contains(message, path)) << path << "\n" << message;
  }
}

// The line about an unknown field that this setting sets.
std::string unknown_field(const std::string& setting) {
  const std::string message = error_of([&] { parse_recipe(kMinimal, "r.json", {setting}); });
  const size_t line = message.find("\n  ");
  return line == message.npos ? message : message.substr(line + 3);
}

TEST(Recipe, UnknownFieldsListEachKnownOneOnce) {
  const std::string message = unknown_field("speed=1");
  const std::string list =
      message.substr(message.find("fields ") + 7, message.find(", got") - message.find("fields ") - 7);
  std::istringstream words(list);
  std::vector<std::string> names{std::istream_iterator<std::string>(words), {}};
  for (const char* name : {"model", "data", "ema", "token_drop"})
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name << " in " << message;
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << message;
}

TEST(Recipe, MisspelledFieldsGetASuggestion) {
  const std::pair<const char*, const char*> settings[] = {{"modle.depth=3", "model"},
                                                          {"model.dpeth=3", "depth"},
                                                          {"model.freze=[]", "freeze"},
                                                          {"modle=vit", "model"},
                                                          {"optimiser.lr=1", "optimizer"},
                                                          {"ema.decy=0.5", "decay"},
                                                          {"data.trian=x", "train"},
                                                          {"augment.erasing.moed=pixel", "mode"},
                                                          {"model.mimetic.qk_nose=1", "qk_noise"},
                                                          {"checkpoint.every_step=1", "every_steps"}};
  for (const auto& [setting, field] : settings) {
    const std::string message = unknown_field(setting);
    EXPECT_TRUE(contains(message, std::string("; did you mean ") + field + "?")) << setting << "\n" << message;
  }
  for (const char* setting : {"model.zzzzzz=3", "zzzzzz.depth=3"})
    EXPECT_FALSE(contains(unknown_field(setting), "did you mean")) << setting;
}

TEST(Recipe, HalfIsThe16BitPrecisionOfTraining) {
  const Recipe half = parse_recipe(kMinimal, "r.json", {"precision=half"});
  EXPECT_EQ(half.precision, "bf16");
  EXPECT_EQ(write_recipe(half), write_recipe(parse_recipe(kMinimal, "r.json", {"precision=bf16"})));
}

TEST(Recipe, MissingRequiredFieldsAreErrors) {
  const std::string message = error_of([] { parse_recipe("{\"model\": \"cifar_vit_d192\"}", "r.json"); });
  EXPECT_TRUE(contains(message, "epochs: expected")) << message;
  EXPECT_TRUE(contains(message, "data.train: expected")) << message;
  EXPECT_TRUE(contains(error_of([] { parse_recipe("{}", "r.json"); }), "model: expected"));
  EXPECT_TRUE(contains(error_of([] { parse_recipe("{,", "r.json"); }), "r.json: expected JSON"));
  EXPECT_TRUE(contains(error_of([] { parse_recipe("[1]", "r.json"); }), "r.json: expected a JSON object"));
  EXPECT_TRUE(contains(error_of([] { read_recipe("/nowhere/r.json"); }), "/nowhere/r.json"));
}

TEST(Recipe, UnknownArchitecturesGiveSuggestions) {
  const std::string message =
      error_of([] { parse_recipe(R"({"model": "vit_tiny_patch16", "data": {"train": "x"}, "epochs": 1})", "r.json"); });
  EXPECT_TRUE(contains(message, "vit_tiny_patch16_224")) << message;
}

TEST(Recipe, OverridesReplaceFields) {
  const Recipe recipe = parse_recipe(kMinimal, "r.json",
                                     {"epochs=7", "data.train=other path", "optimizer.lr=5e-4", "ema.decay=0.5",
                                      "model.depth=3", "augment.padded_crop={\"padding\": 2}", "schedule=linear"});
  EXPECT_EQ(recipe.epochs, 7);
  EXPECT_EQ(recipe.data.train, "other path");
  EXPECT_EQ(recipe.lr, 5e-4);
  EXPECT_EQ(recipe.ema->decay, 0.5);
  EXPECT_EQ(recipe.model.architecture, "cifar_vit_d192");
  EXPECT_EQ(recipe.model.model_args, "{\"depth\":3}");
  EXPECT_EQ(recipe.augment.padded_crop->padding, 2);
  EXPECT_EQ(recipe.schedule.name, "linear");
  EXPECT_THROW(parse_recipe(kMinimal, "r.json", {"epochs"}), Error);
  EXPECT_THROW(parse_recipe(kMinimal, "r.json", {"epochs.first=1"}), Error);
  EXPECT_THROW(parse_recipe(kMinimal, "r.json", {"=1"}), Error);
}

TEST(Recipe, FilesThatCannotBeReadAreErrorsThatNameThemAndTheReason) {
  const fs::path folder = testing::scratch_folder();
  fs::create_symlink("itself", folder / "itself");
  const auto expect = [&](const fs::path& file, const char* reason) {
    const std::string message = error_of([&] { read_recipe(file); });
    EXPECT_TRUE(contains(message, file.string()) && contains(message, reason)) << message;
  };
  expect(folder / "itself", "Too many levels of symbolic links");
  expect(folder / std::string(300, 'n'), "File name too long");
  expect(folder / "absent", "No such file");
  expect(folder, "got a folder");
  expect("/dev/zero", "at most 4194304 bytes");
  write_file(folder / "file", "{}");
  expect(folder / "file/recipe.json", "Not a directory");
}

// Every byte that is not UTF-8, in keys and values and at each place.
TEST(Recipe, SettingsThatAreNotUtf8AreErrors) {
  for (const std::string bytes : {"\xE4", "\xC3", "\xFF\xFE", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80"}) {
    for (const std::string& setting : {"data.train=" + bytes, "data.tr" + bytes + "=x", bytes + "=1",
                                       "model.x=\"" + bytes + "\"", bytes, "data." + bytes + ".x=2"}) {
      const std::string message = error_of([&] { parse_recipe(kMinimal, "r.json", {setting}); });
      EXPECT_TRUE(contains(message, "--set: expected text in UTF-8")) << message;
      EXPECT_TRUE(contains(message, "\\x")) << message;
    }
  }
  EXPECT_EQ(parse_recipe(kMinimal, "r.json", {"data.train=Bäume"}).data.train, "Bäume");
}

// Deeper values would overflow the stack where they are copied and written.
TEST(Recipe, DeeplyNestedValuesAreErrors) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  std::string path = "data";
  for (int i = 0; i < 100'000; ++i) path += ".a";
  EXPECT_TRUE(contains(error_of([&] { parse_recipe(kMinimal, "r.json", {"data.mean=" + deep}); }), "nesting"));
  EXPECT_TRUE(contains(error_of([&] { parse_recipe(kMinimal, "r.json", {path + "=1"}); }), "at most 20 keys"));
  EXPECT_TRUE(contains(error_of([&] { parse_recipe(deep, "r.json"); }), "nesting"));
  EXPECT_TRUE(contains(error_of([&] { recipe_differences("{\"a\":" + deep + "}", "{}"); }), "nesting"));
  EXPECT_TRUE(contains(error_of([&] { recipe_differences("{}", "{"); }), "expected JSON"));
}

TEST(Recipe, WrittenRecipesParseToTheSameRecipe) {
  const std::string first = write_recipe(parse_recipe(tiny_recipe("/x"), "r.json"));
  const std::string second = write_recipe(parse_recipe(first, "again.json"));
  EXPECT_EQ(first, second);
  EXPECT_TRUE(recipe_differences(first, second).empty());
}

TEST(Recipe, DifferencesNameTheFieldAndBothValues) {
  const std::string before = write_recipe(parse_recipe(kMinimal, "r.json"));
  const std::string after =
      write_recipe(parse_recipe(kMinimal, "r.json", {"optimizer.lr=0.5", "data.workers=3", "ema=0.9"}));
  const std::vector<std::string> lines = recipe_differences(before, after);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "optimizer.lr: 0.001 → 0.5"), 1);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "ema.decay: nothing → 0.9"), 1);
  for (const std::string& line : lines) EXPECT_FALSE(contains(line, "workers")) << line;
}

TEST(Recipe, ContradictoryFieldsAreErrors) {
  auto message_with = [](const std::string& setting) {
    return error_of([&] { parse_recipe(kMinimal, "r.json", {setting}); });
  };
  EXPECT_TRUE(contains(message_with(R"(augment={"padded_crop": {}, "random_resized_crop": {}})"), "got both"));
  EXPECT_TRUE(contains(message_with("model.linear_probe=true"), "model.init"));
  EXPECT_TRUE(contains(message_with("loss.distillation={}"), "loss.distillation.teacher"));
  const std::string init = R"(model={"init": "x", )";
  EXPECT_TRUE(contains(message_with(init + R"("mimetic": {}})"), "from scratch"));
  EXPECT_TRUE(contains(message_with(init + R"("positions": "sincos2d"})"), "from scratch"));
  EXPECT_TRUE(contains(
      error_of([&] {
        parse_recipe(kMinimal, "r.json", {R"(loss.distillation={"teacher": "t", "views": 4})", "augment.repeats=3"});
      }),
      "loss.distillation.views"));
  EXPECT_TRUE(contains(error_of([&] {
                         parse_recipe(kMinimal, "r.json",
                                      {R"(loss.distillation={"teacher": "t", "views": 4, "view_epochs": 0})",
                                       "augment.mixup=1"});
                       }),
                       "loss.distillation.view_epochs"));
}

// Expects every key of a written recipe on a page, either in a row of its own or in the JSON of a row.
void expect_documented(const std::string& recipe, const std::string& page) {
  std::istringstream lines(recipe);
  for (std::string line; std::getline(lines, line);) {
    const size_t open = line.find('"'), close = line.find("\":");
    if (open == line.npos || close == line.npos) continue;
    const std::string key = line.substr(open + 1, close - open - 1);
    EXPECT_TRUE(contains(page, "`" + key + "`") || contains(page, "\"" + key + "\":")) << key;
  }
}

TEST(Recipe, EveryFieldIsDocumented) {
  const fs::path root = testing::fixture("../..");
  Recipe recipe = parse_recipe(
      kMinimal, "r.json",
      {"ema=0.9", "augment.random_resized_crop={}", "augment.affine={}", "augment.color_jitter={}", "augment.blur={}",
       "augment.solarize={}", "loss.distillation={\"teacher\": \"t\"}", "token_drop={}", "model.mimetic={}"});
  recipe.augment.padded_crop.emplace();
  const std::string pages = read_text(root / "docs/training.md") + read_text(root / "docs/augmentation.md");
  expect_documented(write_recipe(recipe), pages);
}

// Without the logs of their runs.
std::vector<fs::path> recipes_of_the_project() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(testing::source("recipes"))) {
    if (entry.path().filename() != "logs") files.push_back(entry.path());
  }
  return files;
}

TEST(Recipe, RecipesOfTheProjectAreValid) {
  for (const fs::path& file : recipes_of_the_project()) EXPECT_NO_THROW(read_recipe(file)) << file;
  EXPECT_GE(recipes_of_the_project().size(), 7u);
}

TEST(Recipe, FilesOfTheRepositoryNameNoOtherMachine) {
  for (const fs::path& file : recipes_of_the_project()) {
    const std::string text = read_text(file);
    for (const char* part : {"$", "..", "\"/", "shared"}) EXPECT_FALSE(contains(text, part)) << file;
  }
}

// Anybody's machine resolves what a recipe starts from: a name on the hub, a bundled model, or another recipe's run.
TEST(Recipe, FilesOfTheRepositoryStartFromModelsThatEveryMachineFinds) {
  int named = 0;
  for (const fs::path& file : recipes_of_the_project()) {
    const Recipe recipe = read_recipe(file);
    const std::string& init = recipe.model.init;
    if (init.empty()) continue;
    const bool is_run = init.starts_with("runs/") &&
                        fs::exists(testing::source("recipes") / (init.substr(5, init.find('/', 5) - 5) + ".json"));
    const bool is_named = hub::parse_name(init).has_value();
    EXPECT_TRUE(is_run || is_named || models::find_bundled(init)) << file << ": " << init;
    named += is_named;
  }
  EXPECT_GE(named, 4) << "recipes that start from a model of the hub";
}

TEST(Recipe, AProbeNeedsAModelAndNoEpochs) {
  const std::string text = R"({"objective": "probe", "model": {"init": "MODEL"}, "data": {"train": "photos"}})";
  const Recipe recipe = parse_recipe(text, "r.json");
  EXPECT_EQ(recipe.epochs, 1);
  EXPECT_EQ(parse_recipe(write_recipe(recipe), "r.json").objective, "probe");
  const std::string message = error_of([&] { parse_recipe(text, "r.json", {"model.init=\"\""}); });
  EXPECT_TRUE(contains(message, "model.init: expected the pretrained model of the probe")) << message;
}

// A dataset's own splits replace the data of a recipe; nothing of the other dataset stays.
TEST(RecipeInputs, ADatasetReplacesTheDataOfARecipe) {
  const fs::path images = make_images(2, 1);
  const std::string text = R"({"model": "cifar_vit_d192", "epochs": 1, "data": {"train": "a", "val": "b", "test": "c",
      "holdout": 7, "train_split": "x", "val_split": "y", "test_split": "z", "preset": "cifar10"}})";
  const DataRecipe data = parse_recipe(text, "r.json", dataset_settings(images.string())).data;
  EXPECT_EQ(data.train, images.string());
  EXPECT_EQ(data.val, "");
  EXPECT_EQ(data.test, images.string());
  EXPECT_EQ(data.train_split + data.val_split + data.test_split, "");
  EXPECT_FALSE(data.holdout);
  EXPECT_EQ(data.preset, "cifar10");
  const DataRecipe classes_only = parse_recipe(text, "r.json", dataset_settings((images / "train").string())).data;
  EXPECT_EQ(classes_only.train, (images / "train").string());
  EXPECT_EQ(classes_only.test, "");
}

TEST(RecipeInputs, AModelReplacesTheStartWithItsFiles) {
  const std::string text = R"({"model": {"init": "a", "config": "b", "key_map": "c", "img_size": 32}, "epochs": 1,
      "data": {"train": "x"}})";
  const ModelRecipe model = parse_recipe(text, "r.json", start_settings("2024")).model;
  EXPECT_EQ(model.init, "2024");
  EXPECT_EQ(model.config + model.key_map, "");
  EXPECT_TRUE(contains(model.model_args, "32"));
}

TEST(RecipeInputs, AMissingDatasetIsSaidWithWhatToDo) {
  ::setenv("VITRAIL_HOME", testing::source("").c_str(), 1);
  const std::string cifar = error_of([] { find_dataset("nowhere/cifar10"); });
  const std::string script = find_installed("scripts/get-data").value().string();  // where this installation has it
  EXPECT_TRUE(fs::exists(script)) << script;
  EXPECT_TRUE(contains(cifar, "`" + script + " cifar10 nowhere/cifar10` fetches it")) << cifar;
  const std::string part = error_of([] { find_dataset("nowhere/textiles/labelled"); });
  EXPECT_TRUE(contains(part, "`" + script + " textiles nowhere/textiles` fetches it")) << part;
  const std::string other = error_of([] { find_dataset("nowhere/photos"); });
  EXPECT_TRUE(contains(other, "nowhere/photos: expected a dataset") && contains(other, "--data PATH")) << other;
  EXPECT_FALSE(contains(other, "get-data"));
  const std::filesystem::path loop = testing::scratch_folder() / "loop";
  std::filesystem::create_symlink("loop", loop);
  const std::string reason = loop.string() + ": cannot be opened: Too many levels of symbolic links";
  EXPECT_EQ(error_of([&] { find_dataset(loop); }), reason);
  EXPECT_EQ(error_of([&] { data::open_dataset(loop, {}); }), reason);
  ::unsetenv("VITRAIL_HOME");
}

TEST(RecipeInputs, DistributedDatasetsAreFoundFromAnywhere) {
  const fs::path home = testing::scratch_folder();
  fs::create_directories(home / "examples");
  write_file(home / "examples/a.zip", "x");
  ::setenv("VITRAIL_HOME", home.c_str(), 1);
  EXPECT_EQ(find_dataset("examples/a.zip"), home / "examples/a.zip");
  ::unsetenv("VITRAIL_HOME");
  EXPECT_FALSE(find_installed("examples/a.zip"));
}

TEST(Recipe, TrainingAndValidationImagesAreDifferent) {
  const auto message_with = [](const std::vector<std::string>& settings) {
    return error_of([&] { parse_recipe(kMinimal, "r.json", settings); });
  };
  const std::string train = "data.train=photos", val = "data.val=photos", a = "data.train_split=a";
  EXPECT_TRUE(contains(message_with({train, val, a, "data.val_split=a"}), "data.val_split: expected another split"));
  EXPECT_NO_THROW(parse_recipe(kMinimal, "r.json", {train, val, a, "data.val_split=b"}));
  EXPECT_NO_THROW(parse_recipe(kMinimal, "r.json", {train, "data.val=others", a, "data.val_split=a"}));
  EXPECT_NO_THROW(parse_recipe(kMinimal, "r.json", {train, val}));
}

TEST(Recipe, WhatDoesNotChangeResultsIsNoDifference) {
  const std::string before = write_recipe(parse_recipe(kMinimal, "r.json"));
  const std::vector<std::string> without{"checkpoint.every_steps=7", "checkpoint.every_minutes=7", "data.workers=7",
                                         "data.in_flight=7",         "data.keep_decoded_mb=7",     "log_every=7",
                                         "explain.every=7"};
  EXPECT_EQ(recipe_differences(before, write_recipe(parse_recipe(kMinimal, "r.json", without))),
            std::vector<std::string>{});
  for (const char* setting : {"seed=7", "epochs=7", "batch_size=7", "patience=7", "clip=7", "data.holdout_seed=7",
                              "data.exif=true", "augment.flip=random"}) {
    EXPECT_EQ(recipe_differences(before, write_recipe(parse_recipe(kMinimal, "r.json", {setting}))).size(), 1u)
        << setting;
  }
}

}  // namespace
}  // namespace vitrail::train
