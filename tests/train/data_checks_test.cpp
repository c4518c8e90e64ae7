// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/data_checks_internal.h"

#include "tests/train/training_fixture.h"
#include "vitrail/train/trainer.h"
#include "vitrail/train/utf8_internal.h"

namespace vitrail::train {
namespace {

DataRecipe recipe_for(const fs::path& train, const fs::path& val) {
  DataRecipe recipe;
  recipe.train = train.string();
  recipe.val = val.string();
  return recipe;
}

int64_t shared(const fs::path& train, const fs::path& val) {
  const RunData data = open_data(recipe_for(train, val), 3);
  return shared_with_training(data.train, data.validation);
}

TEST(DataChecks, TheSameFolderUnderAnyPathIsNoticed) {
  const fs::path images = make_images(), train = images / "train";
  fs::create_symlink(train, images / "link");
  EXPECT_EQ(shared(train, train), 60);
  EXPECT_EQ(shared(train, images / "link"), 60);
  EXPECT_EQ(shared(images / "link", train), 60);
  EXPECT_EQ(shared(train, train / ""), 60);
  EXPECT_EQ(shared(train, images / "test/../train"), 60);
  EXPECT_EQ(shared(train, fs::relative(train)), 60);
}

TEST(DataChecks, OtherImagesAreNotShared) {
  const fs::path images = make_images();
  EXPECT_EQ(shared(images / "train", images / "test"), 0);
  DataRecipe recipe = recipe_for(images / "train", "");
  recipe.holdout = 12;
  const RunData data = open_data(recipe, 3);
  EXPECT_EQ(data.validation.size(), 12);
  EXPECT_EQ(shared_with_training(data.train, data.validation), 0);
}

TEST(DataChecks, APartOfTheImagesIsCounted) {
  const fs::path images = make_images();
  fs::rename(images / "test/red", images / "test_red");
  fs::create_symlink(images / "train/red", images / "test/red");
  const RunData data = open_data(recipe_for(images / "train", images / "test"), 3);
  EXPECT_EQ(shared_with_training(data.train, data.validation), 20);
  Warnings warnings;
  warn_of_shared_images(data);
  EXPECT_TRUE(warnings.any("20 of the 28 validation images are training images"));
}

TEST(DataChecks, ATrainingRunTellsSharedImages) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images / "train"), "r.json", {"data.holdout=0", "epochs=1"});
  Warnings warnings;
  train(recipe, {.folder = run, .threads = 1});
  EXPECT_TRUE(warnings.any("60 of the 60 validation images are training images"));
}

TEST(DataChecks, AClassFolderThatIsNotUtf8IsAnErrorBeforeTheFirstStep) {
  for (const std::string name : {"b\xE4ume", "\xFF", "a\xC3"}) {
    const fs::path images = make_images(), run = testing::scratch_folder() / "run";
    fs::rename(images / "train/red", images / "train" / name);
    fs::rename(images / "test/red", images / "test" / name);
    const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json");
    const std::string message = error_of([&] { train(recipe, {.folder = run, .threads = 1}); });
    EXPECT_TRUE(contains(message, "class names in UTF-8")) << message;
    EXPECT_TRUE(contains(message, escape_non_utf8(name))) << message;
    EXPECT_FALSE(fs::exists(run / "metrics.csv"));
  }
}

TEST(Utf8, IsWhatRfc3629Says) {
  for (const std::string text : {"", "a", "ä", "€", "😀", "\xEF\xBB\xBF", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(text));
  for (const std::string text : {"\x80", "\xC3", "\xC0\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF",
                                 "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "a\xFF"})
    EXPECT_FALSE(is_utf8(text));
  EXPECT_EQ(escape_non_utf8("aä\xE4z"), "aä\\xE4z");
}

}  // namespace
}  // namespace vitrail::train
