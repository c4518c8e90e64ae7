// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/training_images.h"

#include "tests/train/training_fixture.h"
#include "vitrail/train/recipe.h"

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
  fs::rename(images / "train", images / "moved");
  warn_of_training_images(run, *data::open_dataset(images / "moved", {}));
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
}

}  // namespace
}  // namespace vitrail::train
