// SPDX-License-Identifier: Apache-2.0
// Data-parallel training, with threads as processes, computes the same as training in one process.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/train/metrics_comparison.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/counters_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

struct Options {
  bool resume = false;
  int stop_after =
      0;  // number of training steps and evaluation batches after which the last rank requests a stop; 0: never
};

// Returns the result of rank 0, and checks that all ranks end at the same step.
TrainingResult train_in(int processes, const fs::path& folder, const Recipe& recipe, const Options& options = {}) {
  std::vector<TrainingResult> results(static_cast<size_t>(processes));
  dist::testing::run_ranks(processes, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    int steps = 0;
    TrainerCallbacks callbacks;
    if (options.stop_after > 0 && communicator->rank() == processes - 1)
      callbacks.stop = [&] { return ++steps >= options.stop_after; };
    results[static_cast<size_t>(communicator->rank())] = train(
        recipe, {.folder = folder, .resume = options.resume, .threads = 1, .communicator = communicator}, callbacks);
  });
  for (const TrainingResult& result : results) EXPECT_EQ(result.step, results[0].step);
  return results[0];
}

TEST(DataParallel, GiveTheLossesOfOneProcessWithTheCompleteBatch) {
  const fs::path runs = testing::scratch_folder(), images = make_images();
  const std::string text = tiny_recipe(images);  // with dropout, drop path and mixup
  train_in(1, runs / "one", parse_recipe(text, "r.json"));
  train_in(2, runs / "two", parse_recipe(text, "r.json", {"batch_size=4"}));
  expect_same_losses(runs / "one", runs / "two");
  train_in(4, runs / "four", parse_recipe(text, "r.json", {"batch_size=2"}));
  expect_same_losses(runs / "one", runs / "four");
}

// Also for a parameter that all blocks read, whose gradient is final when all of them are recomputed.
TEST(DataParallel, SupportGradientAccumulationAndActivationCheckpointing) {
  const fs::path runs = testing::scratch_folder(), images = make_images();
  const std::vector<std::string> settings{"accumulate=4", "model.activation_checkpointing=true",
                                          "augment.mix_mode=element", "model.use_shared_rel_pos_bias=true"};
  std::vector<std::string> settings_of_two = settings;
  settings_of_two.push_back("batch_size=4");
  EXPECT_EQ(train_in(1, runs / "one", parse_recipe(tiny_recipe(images), "r.json", settings)).step, 6);
  EXPECT_EQ(train_in(2, runs / "two", parse_recipe(tiny_recipe(images), "r.json", settings_of_two)).step, 6);
  expect_same_losses(runs / "one", runs / "two");
}

TEST(DataParallel, AverageOverTheReadableImagesOfAllProcesses) {
  const fs::path runs = testing::scratch_folder(), images = make_images();
  for (const char* color :
       {"blue", "green", "red"}) {  // so many unreadable images that some batches of two have none left
    for (int i = 4; i < 20; ++i)
      write_file(images / "train" / color / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"), "not an image");
  }
  const std::vector<std::string> settings{"data.unreadable=leave_out", "data.holdout=12", "augment.mixup=0"};
  std::vector<std::string> settings_of_four = settings;
  settings_of_four.push_back("batch_size=2");
  const TrainingResult one = train_in(1, runs / "one", parse_recipe(tiny_recipe(images), "r.json", settings));
  const TrainingResult four = train_in(4, runs / "four", parse_recipe(tiny_recipe(images), "r.json", settings_of_four));
  EXPECT_GT(one.skipped_images, 0);
  EXPECT_EQ(one.skipped_images, four.skipped_images);
  expect_same_losses(runs / "one", runs / "four");
}

TEST(DataParallel, ResumeBitForBitAfterOneOfThemWasStopped) {
  const fs::path runs = testing::scratch_folder(), images = make_images();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"batch_size=4"});
  train_in(2, runs / "uninterrupted", recipe);
  EXPECT_TRUE(train_in(2, runs / "resumed", recipe, {.stop_after = 13}).stopped);  // within epoch 2
  Warnings warnings;
  EXPECT_FALSE(train_in(2, runs / "resumed", recipe, {.resume = true}).stopped);
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_EQ(deterministic_columns(runs / "uninterrupted/metrics.csv"),
            deterministic_columns(runs / "resumed/metrics.csv"));
  EXPECT_EQ(read_text(runs / "uninterrupted/model/model.safetensors"),
            read_text(runs / "resumed/model/model.safetensors"));
}

TEST(DataParallel, ResumeFromTheSameImageInAnotherNumberWithAWarning) {
  const fs::path runs = testing::scratch_folder(), images = make_images();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"batch_size=4"});  // 48 images
  // Six steps of an epoch, four validation batches (weights and EMA), three steps: epoch 2, after 24 images.
  EXPECT_EQ(train_in(2, runs / "down", recipe, {.stop_after = 13}).step, 9);
  {
    Warnings warnings;
    const TrainingResult result = train_in(1, runs / "down", recipe, {.resume = true});
    EXPECT_TRUE(warnings.any("processes: 2 → 1"));
    EXPECT_EQ(result.step, 9 + 6 + 12);  // the remaining epoch and another one, four images per step
    EXPECT_TRUE(result.test.has_value());
  }
  // Twelve steps, six validation batches, three steps: 12 images, which are one and a half batches of two processes.
  EXPECT_EQ(train_in(1, runs / "up", recipe, {.stop_after = 21}).step, 15);
  const TrainingResult result = train_in(2, runs / "up", recipe, {.resume = true});
  EXPECT_EQ(result.step, 15 + 5 + 6);
  EXPECT_EQ(result.epoch, 3);
  // The last learning rate is that of an uninterrupted run with two processes.
  train_in(2, runs / "uninterrupted", recipe);
  EXPECT_EQ(train_column(runs / "up", Column::rate).back(), train_column(runs / "uninterrupted", Column::rate).back());
}

TEST(DataParallel, SkipTheSameSteps) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(
      tiny_recipe(make_images()), "r.json",
      {"batch_size=4", "optimizer.lr=1e30", "optimizer.name=sgd", "clip=0", "non_finite=skip", "ema=null"});
  const TrainingResult result = train_in(2, run, recipe);
  EXPECT_GT(result.skipped_steps, 0);
  EXPECT_EQ(result.step, 18);
}

TEST(DataParallel, TellTheTimesOfTheirExchange) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"batch_size=4", "epochs=1"});
  const TrainingResult result = train_in(2, run, recipe);
  EXPECT_EQ(result.processes, 2);
  EXPECT_GT(result.communication.seconds, 0);
  EXPECT_GE(result.communication.overlapped, 0);
  EXPECT_LE(result.communication.overlapped, result.communication.seconds);
  EXPECT_GT(result.communication.waited, 0);
  const CommunicationTimes saved =
      Counters::from_json(load_checkpoint(run / "checkpoints/last.safetensors").counters).communication;
  EXPECT_EQ(saved.seconds, result.communication.seconds);
  EXPECT_EQ(saved.overlapped, result.communication.overlapped);
  EXPECT_EQ(saved.waited, result.communication.waited);
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["exchange"]["processes"], 2);
  const TrainingResult again = train_in(2, run, recipe, {.resume = true});
  EXPECT_EQ(again.communication.seconds, result.communication.seconds) << "no step was trained";
  EXPECT_EQ(train_in(1, testing::scratch_folder() / "one", recipe).processes, 1);
}

}  // namespace
}  // namespace vitrail::train
