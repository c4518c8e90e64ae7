// SPDX-License-Identifier: Apache-2.0
// A second training on all images, after the held-out ones have chosen the number of epochs.
#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/train/training_runs.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/classification/cross_validation.h"
#include "vitrail/train/report/result_json.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::train {
namespace {

// The loss on held-out images soon rises.
Recipe retraining_recipe(const fs::path& images, std::vector<std::string> settings = {}) {
  settings.insert(settings.begin(), {"data.retrain=true", "epochs=9", "optimizer.lr=0.3", "patience=2", "ema=null"});
  return parse_recipe(tiny_recipe(images), "r.json", settings);
}

// What the second training of a finished run should have been.
Recipe recipe_of_all(const fs::path& images, int64_t epochs, std::vector<std::string> settings = {}) {
  settings.insert(settings.end(), {"data.retrain=false", "data.val=", "data.holdout=0", "data.test=" + images.string(),
                                   str("epochs=", epochs)});
  return retraining_recipe(images, settings);
}

std::string saved_model(const fs::path& run) { return read_text(run / "model/model.safetensors"); }

TEST(Retraining, SavesTheModelOfAllImagesWithTheFiguresOfTheHeldOutOnes) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const TrainingResult result = train_to(runs / "again", retraining_recipe(images));
  const TrainingResult first = train_to(runs / "first", retraining_recipe(images, {"data.retrain=false"}));
  ASSERT_TRUE(result.retrained);
  EXPECT_FALSE(first.retrained);
  EXPECT_LT(result.best_epoch, result.epoch) << "the case that the second training is shorter";
  EXPECT_EQ(result.retrained->epochs, first.best_epoch);
  EXPECT_EQ(result.retrained->images, 60);
  const TrainingResult all = train_to(runs / "all", recipe_of_all(images, first.best_epoch));
  EXPECT_EQ(saved_model(runs / "again"), saved_model(runs / "all"));
  EXPECT_EQ(result.test->loss, all.test->loss);
  EXPECT_NE(saved_model(runs / "again"), saved_model(runs / "first"));
  // All else is the first training's.
  EXPECT_EQ(result.best->value, first.best->value);
  EXPECT_EQ(result.best->images, 12);
  EXPECT_EQ(read_text(runs / "again/last/model.safetensors"), read_text(runs / "first/last/model.safetensors"));
  const std::vector<std::string> rows = deterministic_columns(runs / "again/metrics.csv"),
                                 expected = deterministic_columns(runs / "first/metrics.csv");
  EXPECT_EQ(std::vector(rows.begin(), rows.end() - 1), std::vector(expected.begin(), expected.end() - 1));
  EXPECT_FALSE(fs::exists(runs / "again/retrain"));
}

TEST(Retraining, IsToldInEachResult) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  std::vector<std::string> messages;
  const TrainerCallbacks callbacks{.message = [&](const std::string& line) { messages.push_back(line); }};
  const Warnings warnings;
  const TrainingResult result = train(retraining_recipe(images), {.folder = run, .threads = 2}, callbacks);
  EXPECT_TRUE(warnings.messages.empty()) << warnings.messages[0];
  const std::string epochs = counted(result.best_epoch, "epoch");
  EXPECT_EQ(messages.back(), "training again on all 60 images, for " + epochs + ": the saved model");
  const nlohmann::json expected{{"epochs", result.best_epoch}, {"images", 60}};
  EXPECT_EQ(nlohmann::json::parse(result_json(result))["retrained"], expected);
  EXPECT_EQ(nlohmann::json::parse(read_text(run / "summary.json"))["retrained"], expected);
  EXPECT_TRUE(contains(read_text(run / "report.html"), "saved model: trained again on all images"));
  EXPECT_TRUE(contains(read_text(run / "model/README.md"),
                       "These weights are of a second training for " + epochs + " on all 60 images"));
  const TrainingResult finished = train(retraining_recipe(images), {.folder = run, .resume = true, .threads = 2});
  ASSERT_TRUE(finished.retrained);
  EXPECT_EQ(finished.retrained->epochs, result.best_epoch);
}

TEST(Retraining, ResumesBitForBit) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const Recipe recipe = retraining_recipe(images);
  int steps = 0;  // evaluated batches count too; the last two are of the test
  train(recipe, {.folder = runs / "whole", .threads = 2}, {.stop = [&] { return ++steps == 0; }});
  const TrainingResult stopped = train_to(runs / "stopped", recipe, false, steps - 4);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_FALSE(stopped.test);
  ASSERT_TRUE(fs::exists(runs / "stopped/retrain/checkpoints/last.safetensors")) << "stopped in the second training";
  const Warnings warnings;
  const TrainingResult result = train_to(runs / "stopped", recipe, true);
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_TRUE(result.retrained);
  EXPECT_EQ(result.metrics.size(), 2u);
  expect_same_runs(runs / "whole", runs / "stopped");
  EXPECT_FALSE(fs::exists(runs / "stopped/retrain"));
}

TEST(Retraining, FollowsMoreEpochsOfAFinishedRun) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "run", retraining_recipe(images, {"epochs=1"}));
  const TrainingResult result = train(retraining_recipe(images, {"epochs=2"}),
                                      {.folder = runs / "run", .resume = true, .allow_changes = true, .threads = 2});
  EXPECT_EQ(result.retrained->epochs, result.best_epoch);
  train_to(runs / "all", recipe_of_all(images, result.best_epoch));
  EXPECT_EQ(saved_model(runs / "run"), saved_model(runs / "all"));
}

// An average with this decay has warmed up after ten steps.
TEST(Retraining, KeepsTheAverageIfTheBestWeightsWereOne) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const std::vector<std::string> settings{"ema={\"decay\": 0.8}", "optimizer.lr=0.05", "schedule.name=constant",
                                          "epochs=4"};
  const Warnings warnings;
  const TrainingResult result = train_to(runs / "again", retraining_recipe(images, settings));
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_TRUE(nlohmann::json::parse(read_text(runs / "again/summary.json"))["held_out"]["averaged_weights"]);
  train_to(runs / "all", recipe_of_all(images, result.best_epoch, settings));
  const CheckpointState all = load_checkpoint(runs / "all/checkpoints/last.safetensors");
  const weights::Checkpoint kept = weights::Checkpoint::open(runs / "again/model/model.safetensors");
  for (const nn::NamedTensor& average : all.average)
    EXPECT_TRUE(testing::close(kept.tensor(average.name), average.tensor, 0)) << average.name;
}

TEST(Retraining, IsOfAllImagesInSeveralProcesses) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const std::vector<std::string> settings{"batch_size=4"};
  const auto train_in_two = [&](const fs::path& folder, const Recipe& recipe) {
    TrainingResult result;
    dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
      const TrainingResult own = train(recipe, {.folder = folder, .threads = 1, .communicator = communicator});
      if (communicator->rank() == 0) result = own;
    });
    return result;
  };
  const TrainingResult result = train_in_two(runs / "again", retraining_recipe(images, settings));
  train_in_two(runs / "all", recipe_of_all(images, result.best_epoch, settings));
  EXPECT_TRUE(result.retrained);
  EXPECT_EQ(saved_model(runs / "again"), saved_model(runs / "all"));
}

TEST(Retraining, NeedsHeldOutImagesAndTime) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  std::vector<std::string> messages;
  const TrainerCallbacks callbacks{.message = [&](const std::string& line) { messages.push_back(line); }};
  const auto told = [&](const std::string& text) { return std::ranges::count(messages, text) == 1; };
  const Recipe all = retraining_recipe(images, {"data.val=", "data.holdout=0", "epochs=1"});
  EXPECT_FALSE(train(all, {.folder = runs / "all", .threads = 2}, callbacks).retrained);
  EXPECT_TRUE(told("data.retrain: no training images are held out, so there is no second training"));
  const TrainerOptions short_time{.folder = runs / "time", .threads = 2, .time_limit = 0.001};
  const TrainingResult result = train(retraining_recipe(images), short_time, callbacks);
  EXPECT_EQ(result.epoch, 1);
  EXPECT_FALSE(result.retrained);
  EXPECT_TRUE(told("no time is left to train on all images: the best weights are kept"));
}

TEST(Retraining, IsNoneOfFoldsWhichChooseNoEpochs) {
  const fs::path images = make_images(8, 1), run = testing::scratch_folder() / "run";
  const Recipe recipe = retraining_recipe(images, {"data.val=", "data.holdout=null", "epochs=1"});
  const CrossValidationResult result = cross_validate(recipe, 2, {.folder = run, .threads = 2});
  EXPECT_FALSE(result.final.retrained);
  EXPECT_FALSE(read_recipe(run / "recipe.json").data.retrain);
}

}  // namespace
}  // namespace vitrail::train
