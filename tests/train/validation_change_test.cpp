// SPDX-License-Identifier: Apache-2.0
// Resumed runs whose validation images or preprocessing have changed: no score is reported of other images.
#include "vitrail/train/run/validation_change_internal.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/train/segment_fixture.h"
#include "tests/train/training_runs.h"
#include "vitrail/models/load.h"

namespace vitrail::train {
namespace {

constexpr double kUnreachableLoss = 1e-9;
constexpr double kFormerTop1 = 0.7;  // no number of the tests' images gives it

// The checkpoint of a run, with other counters.
void change_counters(const fs::path& run, const std::function<void(nlohmann::json&)>& change) {
  const fs::path last = run / "checkpoints/last.safetensors";
  CheckpointState state = load_checkpoint(last);
  for (auto* tensors : {&state.model, &state.optimizer, &state.average}) {
    for (nn::NamedTensor& tensor : *tensors) tensor.tensor = tensor.tensor.clone();
  }
  nlohmann::json counters = nlohmann::json::parse(state.counters);
  change(counters);
  state.counters = counters.dump();
  fs::remove(last);
  save_checkpoint(last, state);
}

// Trains until the first step after the second epoch, which is then the best one that there can be.
void train_two_epochs(const fs::path& run, const Recipe& recipe) {
  int epochs = 0;
  TrainerCallbacks callbacks;
  callbacks.epoch = [&](const EpochResult&) { ++epochs; };
  callbacks.stop = [&] { return epochs == 2; };
  ASSERT_TRUE(train(recipe, {.folder = run, .threads = 1}, callbacks).stopped);
  change_counters(run, [](nlohmann::json& counters) {
    counters["best_epoch"] = 2;
    counters["best_loss"] = kUnreachableLoss;
    counters["best_top1"] = kFormerTop1;
  });
}

TrainingResult resume(const fs::path& run, const Recipe& recipe, const TrainerCallbacks& callbacks = {}) {
  return train(recipe, {.folder = run, .resume = true, .allow_changes = true, .threads = 1}, callbacks);
}

nlohmann::json summary_in(const fs::path& run) { return nlohmann::json::parse(read_text(run / "summary.json")); }

// Four epochs, validated on the 12 images in "test".
Recipe validating_recipe(const fs::path& images, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"epochs=4", "ema=null", "data.holdout=0", "data.val_split=test"};
  settings.insert(settings.end(), more.begin(), more.end());
  return parse_recipe(tiny_recipe(images), "r.json", settings);
}

void remove_an_image_of_each_class(const fs::path& split) {
  for (const char* name : {"blue", "green", "red"}) fs::remove(split / name / "00.png");
}

TEST(ValidationChange, WithTheSameImagesTheBestEpochStays) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = validating_recipe(make_images());
  train_two_epochs(run, recipe);
  const Warnings warnings;
  const TrainingResult result = resume(run, recipe);
  EXPECT_EQ(result.best_epoch, 2);
  EXPECT_EQ(result.best->value, kFormerTop1);
  EXPECT_TRUE(warnings.messages.empty()) << ::testing::PrintToString(warnings.messages);
}

TEST(ValidationChange, OtherImagesForgetTheBestEpoch) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = validating_recipe(images);
  train_two_epochs(run, recipe);
  remove_an_image_of_each_class(images / "test");
  std::vector<EpochResult> epochs;
  TrainerCallbacks callbacks;
  callbacks.epoch = [&](const EpochResult& epoch) { epochs.push_back(epoch); };
  const Warnings warnings;
  const TrainingResult result = resume(run, recipe, callbacks);
  EXPECT_TRUE(
      warnings.any("the best epoch so far, 2, is forgotten and the best is chosen among the coming epochs, because it "
                   "was validated otherwise:\n  validation images: 12 → 9"))
      << ::testing::PrintToString(warnings.messages);
  ASSERT_EQ(epochs.size(), 2u);
  ASSERT_TRUE(result.best_epoch == 3 || result.best_epoch == 4) << result.best_epoch;
  EXPECT_TRUE(epochs[0].best) << "the first of the new ones";
  const double top1 = epochs[static_cast<size_t>(result.best_epoch - 3)].validation->scores[0].value;
  EXPECT_EQ(result.validation_images, 9);
  EXPECT_EQ(result.best->value, top1);
  EXPECT_NEAR(std::round(top1 * 9), top1 * 9, 1e-9) << "a number of images";
  const nlohmann::json held_out = summary_in(run)["held_out"];
  EXPECT_EQ(held_out["images"], 9);
  EXPECT_EQ(held_out["top1"], top1);
  EXPECT_EQ(held_out["epoch"], result.best_epoch);
}

// Patience counts from the new best epoch: the run does not end for an old loss that no new one can reach.
TEST(ValidationChange, PatienceCountsFromTheComingEpochs) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = validating_recipe(images, {"patience=1"});
  train_two_epochs(run, recipe);
  remove_an_image_of_each_class(images / "test");
  EXPECT_EQ(resume(run, recipe).epoch, 4);
}

TEST(ValidationChange, BeforeTheNextValidationNothingIsReported) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = validating_recipe(images);
  train_two_epochs(run, recipe);
  remove_an_image_of_each_class(images / "test");
  for (int times = 0; times < 2; ++times) {  // the second time, the checkpoint has the new images
    TrainerCallbacks callbacks;
    callbacks.stop = [] { return true; };
    const TrainingResult result = resume(run, recipe, callbacks);
    EXPECT_TRUE(result.stopped);
    EXPECT_FALSE(result.best.has_value());
    EXPECT_EQ(result.best_epoch, 0);
    EXPECT_EQ(result.validation_images, 9);
  }
  EXPECT_GT(resume(run, recipe).best_epoch, 2);
}

TEST(ValidationChange, AFinishedRunKeepsItsNumbers) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = validating_recipe(images, {"epochs=1"});
  const TrainingResult finished = train(recipe, {.folder = run, .threads = 1});
  remove_an_image_of_each_class(images / "test");
  const Warnings warnings;
  const TrainingResult again = resume(run, validating_recipe(images, {"epochs=1", "data.mean=[0.9,0.1,0.5]"}));
  EXPECT_FALSE(warnings.any("is forgotten"));
  EXPECT_EQ(again.best_epoch, 1);
  EXPECT_EQ(again.best->value, finished.best->value);
  EXPECT_EQ(again.validation_images, 12);
  EXPECT_EQ(summary_in(run)["held_out"]["images"], 12);
}

TEST(ValidationChange, OtherPreprocessingForgetsTheBestEpoch) {
  const fs::path images = make_images(), scratch = testing::scratch_folder();
  const Recipe recipe = validating_recipe(images);
  train_two_epochs(scratch / "stopped", recipe);
  const std::string before = "8×8, bicubic, crop_pct 1 (center), mean 0.5,0.5,0.5, std 0.5,0.5,0.5";
  for (const auto& [setting, now] :
       {std::pair{"data.mean=[0.9,0.1,0.5]", "8×8, bicubic, crop_pct 1 (center), mean 0.9,0.1,0.5, std 0.5,0.5,0.5"},
        {"data.std=[0.1,0.9,0.3]", "8×8, bicubic, crop_pct 1 (center), mean 0.5,0.5,0.5, std 0.1,0.9,0.3"},
        {"data.crop_pct=0.5", "8×8, bicubic, crop_pct 0.5 (center), mean 0.5,0.5,0.5, std 0.5,0.5,0.5"},
        {"data.interpolation=nearest", "8×8, nearest, crop_pct 1 (center), mean 0.5,0.5,0.5, std 0.5,0.5,0.5"},
        {"data.exif=true",
         "8×8, bicubic, crop_pct 1 (center), mean 0.5,0.5,0.5, std 0.5,0.5,0.5, EXIF orientation applied"}}) {
    const fs::path run = scratch / setting;
    fs::copy(scratch / "stopped", run, fs::copy_options::recursive);
    const Warnings warnings;
    const TrainingResult result = resume(run, validating_recipe(images, {setting}));
    EXPECT_TRUE(warnings.any(str("validated otherwise:\n  preprocessing: ", before, " → ", now)))
        << ::testing::PrintToString(warnings.messages);
    EXPECT_GT(result.best_epoch, 2) << setting;
    EXPECT_NE(result.best->value, kFormerTop1) << setting;
  }
}

// The model in the folder is the one whose numbers are reported.
TEST(ValidationChange, TheModelHasThePreprocessingOfItsNumbers) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train_two_epochs(run, validating_recipe(images));
  const Recipe changed = validating_recipe(images, {"data.mean=[0.9,0.1,0.5]", "data.crop_pct=0.5"});
  resume(run, changed);
  const models::Preprocessing preprocessing = models::open_model(run / "model").config.preprocessing;
  EXPECT_EQ(preprocessing.mean, changed.data.mean);
  EXPECT_EQ(preprocessing.crop_pct, 0.5);
  EXPECT_TRUE(contains(read_text(run / "model/README.md"), " of 12 images"));
}

// The best weights of a run without further epochs are tested as they were validated.
TEST(ValidationChange, AtTheEndOtherPreprocessingIsAnError) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const auto recipe = [&](const std::vector<std::string>& more) {
    std::vector<std::string> settings{"epochs=1", "ema=null"};
    settings.insert(settings.end(), more.begin(), more.end());
    return parse_recipe(tiny_recipe(images), "r.json", settings);
  };
  bool tests = false;
  TrainerCallbacks callbacks;
  callbacks.progress = [&](const Progress& progress) { tests = progress.phase == Progress::Phase::test; };
  callbacks.stop = [&] { return tests; };
  ASSERT_TRUE(train(recipe({}), {.folder = run, .threads = 1}, callbacks).stopped);
  const std::string message = error_of([&] { resume(run, recipe({"data.mean=[0.9,0.1,0.5]"})); });
  EXPECT_TRUE(contains(message, "expected more epochs, or the preprocessing of the best weights (8×8, ")) << message;
  EXPECT_TRUE(contains(message, "mean 0.9,0.1,0.5")) << message;
  EXPECT_TRUE(resume(run, recipe({})).test.has_value());
}

TEST(ValidationChange, AnOlderCheckpointTellsNothing) {
  const CheckpointState before{};
  Counters counters;
  counters.best = {.score = 0.5, .loss = 1};
  counters.best_epoch = 3;
  const Warnings warnings;
  forget_best_of_other_validation(before, {{"validation", 7, 1}}, "8×8", counters);
  check_preprocessing_of_best(before, "8×8", "run");
  EXPECT_EQ(counters.best_epoch, 3);
  EXPECT_TRUE(warnings.messages.empty());
}

TEST(ValidationChange, SegmentationForgetsTheBestEpochToo) {
  const fs::path instances = make_instances(), run = testing::scratch_folder() / "run";
  const auto recipe = [&](const std::string& setting) {
    return parse_recipe(tiny_segment_recipe(instances), "r.json", {"epochs=3", "ema=null", setting});
  };
  train_two_epochs(run, recipe("data.exif=false"));
  const Warnings warnings;
  const TrainingResult result = resume(run, recipe("data.exif=true"));
  EXPECT_TRUE(warnings.any("preprocessing: 32×32 → 32×32, EXIF orientation applied"))
      << ::testing::PrintToString(warnings.messages);
  EXPECT_EQ(result.best_epoch, 3);
}

}  // namespace
}  // namespace vitrail::train
