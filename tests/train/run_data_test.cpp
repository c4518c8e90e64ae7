// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/run_data_internal.h"

#include <algorithm>
#include <functional>
#include <set>

#include "tests/support/errors.h"
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

TEST(RunData, IdsOfClassesTakeNoMemoryForAllBelowThem) {
  const fs::path list = make_images() / "list.csv";
  for (const char* column : {"class_index", "label"}) {
    std::ofstream(list) << "file," << column << "\ntrain/blue/00.png,200000\ntrain/red/00.png,900000\n";
    EXPECT_EQ(open_data(recipe_for(list), 3).classes, (std::vector<std::string>{"200000", "900000"}));
  }
  std::ofstream rows(list);  // a column of ids of the images
  rows << "file,label\n";
  for (int i = 0; i < 200'000; ++i) rows << "a.png," << i << '\n';
  rows.close();
  EXPECT_EQ(error_of([&] { open_data(recipe_for(list), 3); }),
            list.string() + ": expected classes × classes that fit into a quarter of the memory, got 200000 classes");
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

TEST(RunData, AClassWithoutTrainingImagesIsSaid) {
  const fs::path images = make_images(7);
  for (int i = 1; i < 7; ++i) fs::remove(images / "train/blue" / ("0" + std::to_string(i) + ".png"));
  DataRecipe recipe = recipe_for(images / "train");
  const testing::Warnings warnings;
  EXPECT_EQ(open_data(recipe, 3).train.size(), 10);
  EXPECT_TRUE(warnings.messages.empty()) << "the only blue image is for training";
  recipe.folds = 3;
  for (recipe.fold = 1; recipe.fold <= 3; ++recipe.fold) open_data(recipe, 3);
  EXPECT_EQ(warnings.messages, std::vector<std::string>{"classes without training images: 1 of 3 (blue)"});
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
    EXPECT_TRUE(contains(message, "class names in UTF-8 (rename the folder; save a list as UTF-8)")) << message;
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

// Moves of images between the sets are no error, but the accuracy on the held-out images is too high then.
TEST(Resume, OtherImagesAreAWarningThatSaysWhichSetsDiffer) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run", red = images / "train/red/00.png";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"epochs=1", "ema=null"});
  const Recipe cached = parse_recipe(tiny_recipe(images), "r.json", {"epochs=1", "ema=null", "data.keep_decoded_mb=1"});
  train(recipe, {.folder = run, .threads = 1});
  const auto warnings_of = [&](const Recipe& resumed) {
    const Warnings warnings;
    train(resumed, {.folder = run, .resume = true, .threads = 1});
    return warnings.messages;
  };
  EXPECT_TRUE(warnings_of(recipe).empty());
  EXPECT_TRUE(warnings_of(cached).empty());
  const std::string begin = "resuming with other images, so that validation and test images may be trained ones:";
  const auto expect_warning = [&](const std::string& part) {
    const std::vector<std::string> warnings = warnings_of(recipe);
    ASSERT_EQ(warnings.size(), 1u) << ::testing::PrintToString(warnings);
    EXPECT_TRUE(warnings[0].starts_with(begin) && contains(warnings[0], part)) << warnings[0];
  };
  fs::rename(red, images / "train/blue/moved.png");
  expect_warning("\n  training images: 48, with other files, classes or sizes");
  fs::rename(images / "train/blue/moved.png", red);
  EXPECT_TRUE(warnings_of(recipe).empty());
  fs::remove(red);
  expect_warning("\n  training images: 48 → 47");
  write_file(images / "test/red/00.png", read_text(images / "test/red/01.png") + "end");
  expect_warning("\n  test images: 12, with other files, classes or sizes");
}

TEST(RunData, SetsHaveTheNamesThatMessagesShow) {
  const fs::path images = make_images();
  const std::string path = images.string(), classes = ", 3 classes: blue, green, red";
  DataRecipe recipe = recipe_for(images, images);
  recipe.holdout = 6;
  RunData data = open_sets(recipe, 3);
  EXPECT_EQ(data.train.name, "54 of 60 images of " + path + "/train" + classes);
  EXPECT_EQ(data.validation.name, "6 images held out of " + path + "/train");
  EXPECT_EQ(data.test.name, "12 images of " + path + "/test" + classes);
  EXPECT_FALSE(data.multi_label);
  recipe.holdout.reset();
  recipe.val.clear();
  recipe.folds = 4;
  recipe.fold = 2;
  data = open_sets(recipe, 3);
  EXPECT_EQ(data.train.name, "45 of 60 images of " + path + "/train" + classes);
  EXPECT_EQ(data.validation.name, "fold 2 of 4, 15 images");
  EXPECT_EQ(data.validation.dataset, data.train.dataset);
  EXPECT_EQ(data.test.dataset, nullptr);
  recipe.folds = recipe.fold = 0;
  recipe.holdout = 0;
  recipe.test = path;
  data = open_sets(recipe, 3);
  EXPECT_EQ(data.train.name, "60 images of " + path + "/train" + classes);
  EXPECT_TRUE(data.train.samples.empty());
  EXPECT_EQ(data.validation.size(), 0);
  EXPECT_EQ(data.test.size(), 12);
}

TEST(RunData, SplitsThatTheRecipeDoesNotNameAreReported) {
  const fs::path images = make_images();
  DataRecipe recipe = recipe_for(images, images);
  const std::string unused = images.string() + ": images of test are not used";
  for (const bool named : {true, false}) {
    if (!named) recipe.val.clear();
    const Warnings warnings;
    open_sets(recipe, 3);
    EXPECT_EQ(warnings.any(unused), !named);
  }
  recipe.train_split = "train";
  const Warnings warnings;
  open_sets(recipe, 3);
  EXPECT_TRUE(warnings.any(unused));
}

// The recipe's other settings decide which set the images of `val` are.
TEST(RunData, ATestSplitIsForValidationOnlyIfTheRecipeSaysSo) {
  const fs::path images = make_images(), other = make_images(2, 1);
  struct Case {
    const char* what;
    std::function<void(DataRecipe&)> change;
    int64_t train, validation, test;
  };
  const std::vector<Case> cases{{"a split alone", [](DataRecipe&) {}, 40, 20, 12},
                                {"its split is asked for", [](DataRecipe& r) { r.val_split = "test"; }, 60, 12, 0},
                                {"its split is asked for, and some are held out",
                                 [](DataRecipe& r) { r.val_split = "test", r.holdout = 6; }, 54, 6, 12},
                                {"the same test set", [&](DataRecipe& r) { r.test = r.val; }, 40, 20, 12}};
  for (const auto& [what, change, train, validation, test] : cases) {
    DataRecipe recipe = recipe_for(images, images);
    change(recipe);
    const RunData data = open_sets(recipe, 3);
    EXPECT_EQ(data.train.size(), train) << what;
    EXPECT_EQ(data.validation.size(), validation) << what;
    EXPECT_EQ(data.test.size(), test) << what;
  }
  // Validation images are needed then, which "test" is not the name of.
  DataRecipe none_held_out = recipe_for(images, images), tested_elsewhere = none_held_out;
  none_held_out.holdout = 0;
  tested_elsewhere.test = other.string();
  for (const DataRecipe& recipe : {none_held_out, tested_elsewhere}) EXPECT_THROW(open_sets(recipe, 3), Error);
}

// The test split would be taken for the only one, and training images held out.
TEST(RunData, AValidationSplitWithoutImagesIsAnError) {
  const fs::path images = make_images(3, 1);
  fs::create_directories(images / "val/red");
  EXPECT_ERROR(error_of([&] { open_sets(recipe_for(images, images), 3); }), images.string(), "none");
}

TEST(RunData, AHoldOutLeavesAnImage) {
  const fs::path images = make_images(4);  // 12 images
  DataRecipe recipe = recipe_for(images / "train");
  recipe.holdout = 11;
  EXPECT_EQ(open_sets(recipe, 3).train.size(), 1);
  recipe.holdout = 12;
  EXPECT_ERROR(error_of([&] { open_sets(recipe, 3); }), "data.holdout", "12");
}

TEST(RunData, ChannelsAndTheCacheAreTheRecipes) {
  const fs::path images = make_images(2, 1);
  DataRecipe recipe = recipe_for(images);
  recipe.holdout = 2;
  for (const int64_t channels : {1, 3}) {
    for (const int64_t megabytes : {0, 1}) {
      recipe.keep_decoded_mb = megabytes;
      const RunData data = open_data(recipe, channels);
      EXPECT_EQ(data.train.dataset->image(0).channels, channels);
      EXPECT_EQ(data.train.dataset, data.validation.dataset);
      fs::rename(images / "train/blue/00.png", images / "kept");
      const bool cached = megabytes > 0;
      if (cached) {
        EXPECT_NO_THROW(data.train.dataset->image(0)) << "it was decoded before";
      } else {
        EXPECT_THROW(data.train.dataset->image(0), Error);
      }
      fs::rename(images / "kept", images / "train/blue/00.png");
    }
  }
}

TEST(RunData, ASubsetIsOfAllSamplesOrOfThoseNamed) {
  const std::shared_ptr<const data::Dataset> dataset = data::open_dataset(make_images(2, 1), {.split = "train"});
  EXPECT_EQ((Subset{dataset, {}, ""}).size(), 6);
  EXPECT_EQ((Subset{dataset, {4, 1}, ""}).size(), 2);
  EXPECT_EQ((Subset{nullptr, {4, 1}, ""}).size(), 0);
}

}  // namespace
}  // namespace vitrail::train
