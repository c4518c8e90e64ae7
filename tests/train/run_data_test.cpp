// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run_data.h"

#include <set>

#include "tests/train/support.h"

namespace vitrail::train {
namespace {

DataRecipe recipe_for(const fs::path& train, const fs::path& val = {}) {
  DataRecipe recipe;
  recipe.train = train.string();
  recipe.val = val.string();
  return recipe;
}

TEST(RunData, ATestSplitIsReadOnceAndHeldOutImagesChoose) {
  const fs::path pictures = make_pictures();
  const RunData data = open_data(recipe_for(pictures, pictures), 3);
  EXPECT_EQ(data.classes, (std::vector<std::string>{"blue", "green", "red"}));
  EXPECT_EQ(data.train.size(), 54);  // a tenth of 60 is held out
  EXPECT_EQ(data.validation.size(), 6);
  EXPECT_EQ(data.test.size(), 12);
  std::set<int64_t> seen(data.train.samples.begin(), data.train.samples.end());
  for (const int64_t sample : data.validation.samples) EXPECT_TRUE(seen.insert(sample).second);
}

TEST(RunData, AValidationSplitIsReadEachEpoch) {
  const fs::path pictures = make_pictures();
  fs::rename(pictures / "test", pictures / "val");
  const RunData data = open_data(recipe_for(pictures, pictures), 3);
  EXPECT_EQ(data.train.size(), 60);
  EXPECT_EQ(data.validation.size(), 12);
  EXPECT_EQ(data.test.size(), 0);
}

TEST(RunData, PlainFoldersOfClassesWorkToo) {
  const fs::path pictures = make_pictures();
  const RunData data = open_data(recipe_for(pictures / "train", pictures / "test"), 3);
  EXPECT_EQ(data.train.size(), 60);
  EXPECT_EQ(data.validation.size(), 12);
}

TEST(RunData, TheTrainingImagesAreNeverAnotherSplit) {
  const fs::path pictures = make_pictures();
  fs::remove_all(pictures / "train");
  EXPECT_THROW(open_data(recipe_for(pictures), 3), Error);
}

TEST(RunData, OneClassIsNotEnough) {
  const fs::path pictures = make_pictures();
  fs::remove_all(pictures / "train/red");
  fs::remove_all(pictures / "train/green");
  const std::string message = error_of([&] { open_data(recipe_for(pictures), 3); });
  EXPECT_TRUE(contains(message, "expected images of at least two classes, got one class: blue")) << message;
}

TEST(RunData, AnEmptyDatasetIsAnError) {
  const fs::path empty = testing::scratch_folder();
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe_for(empty), 3); }), empty.string()));
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe_for(empty / "no"), 3); }), "no"));
}

TEST(RunData, AHoldOutThatLeavesNothingIsAnError) {
  DataRecipe recipe = recipe_for(make_pictures());
  recipe.holdout = 60;
  EXPECT_TRUE(contains(error_of([&] { open_data(recipe, 3); }), "data.holdout"));
}

TEST(RunData, ClassesOfTheValidationSetMustBeTheTrainingSets) {
  const fs::path pictures = make_pictures();
  fs::rename(pictures / "test/red", pictures / "test/violet");
  const std::string message = error_of([&] { open_data(recipe_for(pictures / "train", pictures / "test"), 3); });
  EXPECT_TRUE(contains(message, "violet")) << message;
}

}  // namespace
}  // namespace vitrail::train
