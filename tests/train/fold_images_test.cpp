// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/fold_images_internal.h"

#include "tests/support/errors.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/classification/cross_validation.h"

namespace vitrail::train {
namespace {

// A cross-validation of two folds that is stopped in the second one.
class StoppedFolds : public ::testing::Test {
 protected:
  void SetUp() override {
    int calls = 0;
    const TrainerCallbacks stop{.stop = [&] { return fs::exists(run_ / "folds/2/metrics.csv") && ++calls == 2; }};
    ASSERT_TRUE(cross_validate(recipe(), 2, {.folder = run_, .threads = 1}, stop).final.stopped);
    ASSERT_TRUE(fs::exists(run_ / "folds/1/summary.json"));
    ASSERT_TRUE(fs::exists(run_ / "folds/2/checkpoints/last.safetensors"));
  }

  Recipe recipe(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> settings{"data.val=\"\"", "data.holdout=null", "epochs=1", "ema=null", "batch_size=4"};
    settings.insert(settings.end(), more.begin(), more.end());
    return parse_recipe(tiny_recipe(images_), "r.json", settings);
  }
  CrossValidationResult resume(const Recipe& recipe, int64_t folds = 2, bool allow_changes = false) const {
    return cross_validate(recipe, folds,
                          {.folder = run_, .resume = true, .allow_changes = allow_changes, .threads = 1});
  }

  const fs::path images_ = make_images(6) / "train", run_ = testing::scratch_folder() / "run";
};

TEST_F(StoppedFolds, ResumeWithTheirImagesAlone) {
  const fs::path red = images_ / "red/00.png", aside = images_.parent_path() / "aside.png";
  fs::rename(red, aside);
  for (const bool allow_changes : {false, true}) {
    EXPECT_ERROR(error_of([&] { resume(recipe(), 2, allow_changes); }), run_.string(),
                 "8; begin the cross-validation again in another folder");
  }
  fs::rename(aside, images_ / "red/moved.png");
  EXPECT_TRUE(contains(error_of([&] { resume(recipe()); }), "got others; begin the cross-validation again"));
  fs::rename(images_ / "red/moved.png", red);
  const CrossValidationResult result = resume(recipe());
  EXPECT_FALSE(result.final.stopped);
  EXPECT_EQ(result.images, 18);
}

// Another number of folds is another recipe; allowing it does not make its parts those of the first fold.
TEST_F(StoppedFolds, OfAnotherRecipeAreRefusedAsBefore) {
  EXPECT_TRUE(contains(error_of([&] { resume(recipe(), 3); }), "the run was started with another recipe"));
  EXPECT_TRUE(contains(error_of([&] { resume(recipe({"clip=7"})); }), "the run was started with another recipe"));
  EXPECT_TRUE(contains(error_of([&] { resume(recipe(), 3, true); }), "begin the cross-validation again"));
}

TEST_F(StoppedFolds, AreNotReplaced) {
  EXPECT_TRUE(contains(error_of([&] { cross_validate(recipe(), 2, {.folder = run_, .threads = 1}); }), "folds/1: "));
}

// The model of all images is trained last: what would end its training is an error before the first fold.
TEST(CrossValidation, ReplacesNoRunInItsFolder) {
  const fs::path images = make_images(6) / "train", run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.val=\"\"", "data.holdout=null", "epochs=1"});
  fs::create_directories(run / "model");
  write_file(run / "model/config.json", "mine");
  for (const bool resume : {false, true}) {
    const std::string message =
        error_of([&] { cross_validate(recipe, 2, {.folder = run, .resume = resume, .threads = 1}); });
    EXPECT_TRUE(message.starts_with(run.string() + ": expected") && contains(message, "model")) << message;
  }
  EXPECT_FALSE(fs::exists(run / "folds"));
}

}  // namespace
}  // namespace vitrail::train
