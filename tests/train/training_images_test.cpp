// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/training_images.h"

#include <sys/stat.h>

#include "tests/train/training_fixture.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

// A folder with the recipe of a run that holds out 12 of 60 images.
fs::path run_on(const fs::path& images) {
  const fs::path run = testing::scratch_folder() / "run";
  fs::create_directories(run);
  write_file(run / "recipe.json", write_recipe(parse_recipe(tiny_recipe(images), "r.json")));
  return run;
}

TEST(TrainingImages, AreSaidByPathAndByContent) {
  const fs::path images = make_images(), copy = testing::scratch_folder() / "copy";
  fs::copy(images / "train", copy, fs::copy_options::recursive);
  const fs::path run = run_on(images);
  for (const fs::path& model : {run, run / "", run / "model", run / "last"}) {
    for (const auto& dataset : {data::open_dataset(images, {.split = "train"}), data::open_dataset(copy, {})}) {
      const testing::Warnings warnings;
      warn_of_training_images(model, *dataset);
      EXPECT_TRUE(warnings.any("48 of 60 evaluated images are also training images")) << model;
    }
  }
}

TEST(TrainingImages, OtherImagesAndOtherModelsGiveNoWarning) {
  const fs::path images = make_images(), run = run_on(images);
  const testing::Warnings warnings;
  warn_of_training_images(run, *data::open_dataset(images, {.split = "test"}));
  warn_of_training_images(testing::fixture("models/timm_token"), *data::open_dataset(images, {.split = "train"}));
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
}

TEST(TrainingImages, ThatAreMovedOrChangedAreAWarning) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train(parse_recipe(tiny_recipe(images), "r.json", {"epochs=1", "ema=null"}), {.folder = run, .threads = 1});
  const auto dataset = data::open_dataset(images / "train", {});
  const auto warnings_of_model = [&] {
    const Warnings warnings;
    warn_of_training_images(run / "model", *dataset);
    return warnings.messages;
  };
  std::vector<std::string> warnings = warnings_of_model();
  ASSERT_EQ(warnings.size(), 1u) << ::testing::PrintToString(warnings);
  EXPECT_TRUE(contains(warnings[0], "48 of 60 evaluated images are also training images")) << warnings[0];
  fs::copy_file(images / "train/red/00.png", images / "train/red/copy.png");
  warnings = warnings_of_model();
  ASSERT_EQ(warnings.size(), 2u) << ::testing::PrintToString(warnings);
  EXPECT_EQ(warnings[0],
            "the training images have changed since the run had 48: which evaluated images it was trained on is "
            "uncertain");
  EXPECT_TRUE(contains(warnings[1], " of 60 evaluated images are also training images")) << warnings[1];
  fs::rename(images, images.string() + "-moved");
  warnings = warnings_of_model();
  ASSERT_EQ(warnings.size(), 1u) << ::testing::PrintToString(warnings);
  EXPECT_TRUE(warnings[0].starts_with("whether evaluated images are training images too cannot be checked: " +
                                      images.string() + ": expected a dataset"))
      << warnings[0];
  fs::rename(images.string() + "-moved", images);
}

// The recipe of a run from elsewhere may name a pipe, which would be waited for, or a disk, which would be searched.
TEST(TrainingImages, AreComparedOnlyInFilesAndPlausibleFolders) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run", large = run.parent_path() / "large";
  train(parse_recipe(tiny_recipe(images), "r.json", {"epochs=1", "ema=null"}), {.folder = run, .threads = 1});
  const auto dataset = data::open_dataset(images / "train", {});
  const auto warnings_with = [&](const std::vector<std::string>& settings) {
    write_file(run / "recipe.json", write_recipe(parse_recipe(tiny_recipe(images), "r.json", settings)));
    const Warnings warnings;
    warn_of_training_images(run, *dataset);
    return warnings.messages;
  };
  const std::string begin = "whether evaluated images are training images too cannot be checked: ";
  const fs::path pipe = run.parent_path() / "pipe.csv";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const char* field : {"data.train=", "data.val=", "data.test="}) {
    EXPECT_EQ(
        warnings_with({field + pipe.string()}),
        std::vector<std::string>{begin + pipe.string() + ": expected a regular file or a folder, got something else"});
  }
  // The run had 72 images, but small ones may have ten thousand files beside them.
  fs::copy(images / "train", large, fs::copy_options::recursive);
  const std::vector<std::string> settings{"data.train=" + large.string(), "data.val=" + images.string()};
  constexpr int kEntries = 63;  // three classes of 20 images
  for (int i = kEntries; i < 10'000; ++i) write_file(large / "red" / (std::to_string(i) + ".txt"), "");
  const std::vector<std::string> compared = warnings_with(settings);
  ASSERT_FALSE(compared.empty());
  EXPECT_TRUE(contains(compared.back(), "48 of 60 evaluated images are also training images")) << compared.back();
  write_file(large / "red/one more.txt", "");
  EXPECT_EQ(warnings_with(settings),
            std::vector<std::string>{begin + large.string() +
                                     ": expected a folder with at most 10000 files and folders, got more"});
}

}  // namespace
}  // namespace vitrail::train
