// SPDX-License-Identifier: Apache-2.0
// Training in several processes, played by threads: what they compute together is what one computes alone.
#include <cmath>

#include "tests/dist/thread_communicator.h"
#include "tests/train/processes.h"
#include "vitrail/train/checkpoint.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

struct Options {
  bool resume = false;
  int stop_after = 0;  // steps and validation batches, when the last process asks for a stop; 0: never
};

// The result of the first process; all have to end at the same step.
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

TEST(Processes, WithABatchEachTrainAsOneWithTheWholeBatch) {
  const fs::path runs = testing::scratch_folder(), pictures = make_pictures();
  const std::string text = tiny_recipe(pictures);  // dropout, drop path and mixup are on
  train_in(1, runs / "one", parse_recipe(text, "r.json"));
  train_in(2, runs / "two", parse_recipe(text, "r.json", {"batch_size=4"}));
  expect_same_losses(runs / "one", runs / "two");
  train_in(4, runs / "four", parse_recipe(text, "r.json", {"batch_size=2"}));
  expect_same_losses(runs / "one", runs / "four");
}

TEST(Processes, AccumulateAndKeepActivationsAsOneDoes) {
  const fs::path runs = testing::scratch_folder(), pictures = make_pictures();
  const std::vector<std::string> both{"accumulate=4", "model.activation_checkpointing=true",
                                      "augment.mix_mode=element"};
  std::vector<std::string> halves = both;
  halves.push_back("batch_size=4");
  EXPECT_EQ(train_in(1, runs / "one", parse_recipe(tiny_recipe(pictures), "r.json", both)).step, 6);
  EXPECT_EQ(train_in(2, runs / "two", parse_recipe(tiny_recipe(pictures), "r.json", halves)).step, 6);
  expect_same_losses(runs / "one", runs / "two");
}

TEST(Processes, ShareTheMeanOverTheImagesThatCouldBeRead) {
  const fs::path runs = testing::scratch_folder(), pictures = make_pictures();
  for (const char* color : {"blue", "green", "red"}) {  // so many that a process of two images has batches without any
    for (int i = 4; i < 20; ++i)
      write_file(pictures / "train" / color / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"), "no picture");
  }
  const std::vector<std::string> settings{"data.unreadable=leave_out", "data.holdout=12", "augment.mixup=0"};
  std::vector<std::string> pairs = settings;
  pairs.push_back("batch_size=2");
  const TrainingResult one = train_in(1, runs / "one", parse_recipe(tiny_recipe(pictures), "r.json", settings));
  const TrainingResult four = train_in(4, runs / "four", parse_recipe(tiny_recipe(pictures), "r.json", pairs));
  EXPECT_GT(one.skipped_images, 0);
  EXPECT_EQ(one.skipped_images, four.skipped_images);
  expect_same_losses(runs / "one", runs / "four");
}

TEST(Processes, ResumeBitForBitWhenOneOfThemWasStopped) {
  const fs::path runs = testing::scratch_folder(), pictures = make_pictures();
  const Recipe recipe = parse_recipe(tiny_recipe(pictures), "r.json", {"batch_size=4"});
  train_in(2, runs / "whole", recipe);
  EXPECT_TRUE(train_in(2, runs / "cut", recipe, {.stop_after = 13}).stopped);  // within epoch 2
  Warnings warnings;
  EXPECT_FALSE(train_in(2, runs / "cut", recipe, {.resume = true}).stopped);
  EXPECT_TRUE(warnings.messages.empty());
  EXPECT_EQ(timeless_rows(runs / "whole/metrics.csv"), timeless_rows(runs / "cut/metrics.csv"));
  EXPECT_EQ(read_text(runs / "whole/model/model.safetensors"), read_text(runs / "cut/model/model.safetensors"));
}

TEST(Processes, OfAnotherNumberGoOnFromTheSameImageWithAWarning) {
  const fs::path runs = testing::scratch_folder(), pictures = make_pictures();
  const Recipe recipe = parse_recipe(tiny_recipe(pictures), "r.json", {"batch_size=4"});  // 48 images
  // An epoch's six steps, four batches of validation with the average's, three steps: epoch 2, 24 images.
  EXPECT_EQ(train_in(2, runs / "down", recipe, {.stop_after = 13}).step, 9);
  {
    Warnings warnings;
    const TrainingResult result = train_in(1, runs / "down", recipe, {.resume = true});
    EXPECT_TRUE(warnings.any("processes: 2 → 1"));
    EXPECT_EQ(result.step, 9 + 6 + 12);  // the rest of the epoch and another one, four images a step
    EXPECT_TRUE(result.tested);
  }
  // Twelve steps, six batches of validation, three steps: 12 images, one of the larger batches and a half.
  EXPECT_EQ(train_in(1, runs / "up", recipe, {.stop_after = 21}).step, 15);
  const TrainingResult result = train_in(2, runs / "up", recipe, {.resume = true});
  EXPECT_EQ(result.step, 15 + 5 + 6);
  EXPECT_EQ(result.epoch, 3);
  // The rates of the last steps are those of a run that had its number of processes from the beginning.
  train_in(2, runs / "whole", recipe);
  EXPECT_EQ(train_column(runs / "up", Column::rate).back(), train_column(runs / "whole", Column::rate).back());
}

TEST(Processes, LeaveOutTheSameSteps) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(
      tiny_recipe(make_pictures()), "r.json",
      {"batch_size=4", "optimizer.lr=1e30", "optimizer.name=sgd", "clip=0", "non_finite=skip", "ema=null"});
  const TrainingResult result = train_in(2, run, recipe);
  EXPECT_GT(result.skipped_steps, 0);
  EXPECT_EQ(result.step, 18);
}

}  // namespace
}  // namespace vitrail::train
