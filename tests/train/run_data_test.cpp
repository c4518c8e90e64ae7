// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run_data_internal.h"

#include <algorithm>
#include <set>

#include "tests/train/training_fixture.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

DataRecipe recipe_for(const fs::path& train, const fs::path& val = {}) {
  DataRecipe recipe;
  recipe.train = train.string();
  recipe.val = val.string();
  return recipe;
}

TEST(RunData, AValidationPathWithOnlyATestSplitIsTheTestSet) {
  const fs::path images = make_images();
  const RunData data = open_data(recipe_for(images, images), 3);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"blue", "green", "red"}));
  EXPECT_EQ(data.train.size(), 40);  // a third of 60 is held out
  EXPECT_EQ(data.validation.size(), 20);
  EXPECT_EQ(data.test.size(), 12);
  std::set<int64_t> seen(data.train.samples.begin(), data.train.samples.end());
  for (const int64_t sample : data.validation.samples) EXPECT_TRUE(seen.insert(sample).second);
}

TEST(RunData, AHoldOutBesideATestSetLeavesIt) {
  const fs::path images = make_images(), other = make_images(2, 2);
  fs::rename(images / "test", images / "val");
  DataRecipe recipe = recipe_for(images, images);
  recipe.holdout = 6;
  RunData data = open_data(recipe, 3);
  EXPECT_EQ(data.test.size(), 12) << "the validation set becomes the test set";
  EXPECT_EQ(data.validation.size(), 6);
  recipe.test = other.string();
  data = open_data(recipe, 3);
  EXPECT_EQ(data.test.size(), 6);
  EXPECT_EQ(data.validation.size(), 6);
  EXPECT_EQ(data.train.size(), 54);
}

TEST(RunData, TheSeedChoosesTheHeldOutImages) {
  DataRecipe recipe = recipe_for(make_images());
  recipe.holdout = 12;
  const auto held_out = [&](uint64_t seed) {
    recipe.holdout_seed = seed;
    std::vector<int64_t> samples = open_data(recipe, 3).validation.samples;
    std::ranges::sort(samples);
    return samples;
  };
  EXPECT_EQ(held_out(1), held_out(1));
  EXPECT_NE(held_out(1), held_out(2));
  EXPECT_NE(held_out(0), held_out(2));
}

TEST(RunData, AValidationSplitIsUsedForValidation) {
  const fs::path images = make_images();
  fs::rename(images / "test", images / "val");
  const RunData data = open_data(recipe_for(images, images), 3);
  EXPECT_EQ(data.train.size(), 60);
  EXPECT_EQ(data.validation.size(), 12);
  EXPECT_EQ(data.test.size(), 0);
}

TEST(RunData, FoldersWithoutSplitsAreUsedCompletely) {
  const fs::path images = make_images();
  const RunData data = open_data(recipe_for(images / "train", images / "test"), 3);
  EXPECT_EQ(data.train.size(), 60);
  EXPECT_EQ(data.validation.size(), 12);
}

TEST(RunData, AnotherSplitIsNeverUsedForTraining) {
  const fs::path images = make_images();
  fs::remove_all(images / "train");
  EXPECT_THROW(open_data(recipe_for(images), 3), Error);
}

TEST(RunData, OneClassIsAnError) {
  const fs::path images = make_images();
  fs::remove_all(images / "train/red");
  fs::remove_all(images / "train/green");
  const std::string message = error_of([&] { open_data(recipe_for(images), 3); });
  EXPECT_TRUE(contains(message, "expected images of at least two classes, got one class: blue")) << message;
}

TEST(RunData, AnEmptyDatasetIsAnError) {
  const fs::path empty = testing::scratch_folder();
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe_for(empty), 3); }), empty.string()));
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe_for(empty / "no"), 3); }), "no"));
}

TEST(RunData, AHoldOutOfAllImagesIsAnError) {
  DataRecipe recipe = recipe_for(make_images());
  recipe.holdout = 60;
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe, 3); }), "data.holdout"));
}

TEST(RunData, ValidationClassesMustBeTrainingClasses) {
  const fs::path images = make_images();
  fs::rename(images / "test/red", images / "test/violet");
  const std::string message = error_of([&] { open_data(recipe_for(images / "train", images / "test"), 3); });
  EXPECT_TRUE(contains(message, "violet")) << message;
}

TEST(RunData, SplitsAreKnownUnderOtherNames) {
  const fs::path images = make_images();
  fs::rename(images / "train", images / "Training");
  fs::rename(images / "test", images / "Testing");
  const RunData data = open_data(recipe_for(images, images), 3);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"blue", "green", "red"}));
  EXPECT_EQ(data.train.size(), 40);
  EXPECT_EQ(data.test.size(), 12);
  EXPECT_TRUE(contains(data.train.name, "Training, 3 classes: blue, green, red")) << data.train.name;
  EXPECT_TRUE(contains(data.test.name, "Testing, 3 classes")) << data.test.name;
}

TEST(RunData, SharedImagesOfTheSetsAreSaid) {
  const fs::path images = make_images();
  {
    testing::Warnings warnings;
    open_data(recipe_for(images, images), 3);
    EXPECT_TRUE(warnings.messages.empty());
  }
  testing::Warnings warnings;
  fs::copy_file(images / "train/red/00.png", images / "test/red/copy.png");
  open_data(recipe_for(images / "train", images / "test"), 3);
  EXPECT_TRUE(warnings.any("1 of 13 validation images are also training images"));
  open_data(recipe_for(images / "train", images / "train"), 3);
  EXPECT_TRUE(warnings.any("60 of 60 validation images are also training images"));
}

TEST(RunData, AClassNameThatIsNotUtf8IsAnErrorBeforeTheWork) {
  for (const auto& [name, shown] : std::vector<std::pair<std::string, std::string>>{
           {"caf\xe9", "'caf\\xE9'"}, {"b\xE4ume", "'b\\xE4ume'"}, {"\xFF", "'\\xFF'"}, {"a\xC3", "'a\\xC3'"}}) {
    const fs::path images = make_images();
    fs::rename(images / "train/red", images / "train" / name);
    fs::rename(images / "test/red", images / "test" / name);
    const std::string message = error_of([&] { open_data(recipe_for(images), 3); });
    EXPECT_TRUE(contains(message, "class names in UTF-8")) << message;
    EXPECT_TRUE(contains(message, shown)) << message;
  }
}

TEST(Resume, AnotherNumberingOfTheClassesIsAnError) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"epochs=1"});
  train(recipe, {.folder = run, .threads = 1});
  const TrainerOptions resumed{.folder = run, .resume = true, .threads = 1};
  EXPECT_NO_THROW(train(recipe, resumed));
  for (const char* split : {"train", "test"}) fs::rename(images / split / "red", images / split / "amber");
  const std::string message = error_of([&] { train(recipe, resumed); });
  EXPECT_TRUE(contains(message, "with 'blue' as class 0, got 3 classes, with 'amber'")) << message;
}

}  // namespace
}  // namespace vitrail::train
