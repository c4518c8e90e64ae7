// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/support/golden.h"
#include "tests/train/metrics_comparison.h"
#include "tests/train/training_runs.h"
#include "vitrail/kernels/gemm/linear.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/classification/training_step_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_folder_internal.h"

namespace vitrail::train {
namespace {

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Trainer, WritesAllFilesOfTheRunFolder) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(run, parse_recipe(tiny_recipe(images), "r.json"));
  EXPECT_FALSE(result.stopped);
  EXPECT_EQ(result.epoch, 3);
  EXPECT_EQ(result.step, 18);  // 48 images in batches of 8
  EXPECT_TRUE(result.test.has_value());
  for (const char* file :
       {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/config.json", "model/model.safetensors",
        "checkpoints/last.safetensors", "checkpoints/previous.safetensors", "checkpoints/best.safetensors",
        "checkpoints/ema.safetensors"}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  const std::vector<std::string> rows = deterministic_columns(run / "metrics.csv");
  EXPECT_EQ(rows.size(), 1u + 18 + 3 * 2 + 1);  // header, steps, validations of weights and EMA, test
  EXPECT_TRUE(rows.back().starts_with("test,18,"));
  const std::string report =
      read_text(run / "report.html");  // loss, accuracy by epoch and accuracy by time, three values each
  EXPECT_EQ(count(report, "<title>validation: "), 9);
  EXPECT_EQ(count(report, "<title>validation, EMA weights: "), 9);
  EXPECT_TRUE(contains(report, "minutes</text>"));
  const models::OpenedModel opened = models::open_model(run / "model");
  EXPECT_EQ(opened.config.labels, (std::vector<std::string>{"blue", "green", "red"}));
  EXPECT_TRUE(opened.config.preprocessing.missing().empty());
  models::build_model(opened);
}

std::string column(const std::string& row, int index) {
  std::istringstream columns(row);
  std::string text;
  for (int i = 0; i <= index; ++i) std::getline(columns, text, ',');
  return text;
}

// A thousand epochs become those that fit, and the schedule ends with them.  The last epochs may be dropped when the
// machine slows down, so the last rate is only known to be far below the highest one.
TEST(Trainer, ATimeLimitReducesTheEpochsAndEndsTheSchedule) {
  for (const bool validation : {true, false}) {
    nlohmann::json json = nlohmann::json::parse(tiny_recipe(make_images()));
    json["epochs"] = 1000;
    json["log_every"] = 1;
    if (!validation) json["data"] = {{"train", json["data"]["train"]}, {"holdout", 0}};
    const fs::path scratch = testing::scratch_folder(), run = scratch / "run";
    const double one_epoch =
        train(parse_recipe(json.dump(), "r.json", {"epochs=1"}), {.folder = scratch / "one", .threads = 1}).seconds;
    const Recipe recipe = parse_recipe(json.dump(), "r.json");
    const double limit = std::max(1.0, 8 * one_epoch);
    const TrainingResult result = train(recipe, {.folder = run, .threads = 1, .time_limit = limit});
    EXPECT_FALSE(result.stopped);
    EXPECT_GE(result.epoch, 1);
    EXPECT_LT(result.epoch, 1000);
    const Recipe written = read_recipe(run / "recipe.json");
    EXPECT_EQ(written.epochs, result.epoch);
    double last_rate = recipe.lr;
    for (const std::string& row : deterministic_columns(run / "metrics.csv")) {
      if (row.starts_with("train,")) last_rate = std::stod(column(row, 6));
    }
    EXPECT_LT(last_rate, recipe.lr / 2);
    models::build_model(models::open_model(run / "model"));
  }
}

// 72 steps.
TEST(Trainer, MetricsHaveTheFirstAndLastStepAndAtLeastTwentyRows) {
  const fs::path images = make_images();
  const auto logged_steps = [&](const char* log_every) {
    const fs::path run = testing::scratch_folder() / "run";
    train_to(run, parse_recipe(tiny_recipe(images), "r.json", {"epochs=12", log_every, "validate_every=12"}));
    std::vector<int> steps;
    for (const std::string& row : deterministic_columns(run / "metrics.csv")) {
      if (row.starts_with("train,")) steps.push_back(std::stoi(row.substr(6)));
    }
    return steps;
  };
  const std::vector<int> rare = logged_steps("log_every=1000");
  EXPECT_EQ(rare.size(), 25u);  // every third step, and the first
  EXPECT_EQ(rare.front(), 1);
  EXPECT_EQ(rare.back(), 72);
  const std::vector<int> frequent = logged_steps("log_every=2");
  EXPECT_EQ(frequent.size(), 37u);
  EXPECT_EQ(frequent[1], 2);
}

TEST(Trainer, MetricsHaveTheLastStepIfTheRunEndsEarly) {
  const fs::path run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, parse_recipe(tiny_recipe(make_images()), "r.json",
                                 {"epochs=30", "log_every=1000", "patience=1", "optimizer.lr=0.3", "ema=null"}));
  ASSERT_LT(result.epoch, 30);
  std::string last;
  for (const std::string& row : deterministic_columns(run / "metrics.csv")) {
    if (row.starts_with("train,")) last = row;
  }
  EXPECT_TRUE(last.starts_with("train," + std::to_string(result.step) + ",")) << last;
}

TEST(Trainer, AReportOfOneStepHasNoEmptyCharts) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images(3)), "r.json", {"epochs=1", "data.holdout=1"});
  EXPECT_EQ(train_to(run, recipe).step, 1);
  const std::string report = read_text(run / "report.html");
  EXPECT_FALSE(contains(report, "<svg"));
  EXPECT_FALSE(contains(report, "Curves"));
}

TEST(Trainer, AFolderAmongTheImagesIsAnError) {
  const fs::path images = make_images(4, 1), beside = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"epochs=1", "data.holdout=4"});
  fs::create_directory_symlink(images / "train", beside / "link");
  for (const fs::path& run : {images, images / "", images / "train", images / "train/../test", beside / "link"}) {
    EXPECT_EQ(error_of([&] { train_to(run, recipe); }), run.string() + ": expected a folder outside of the images in " +
                                                            images.string() + ", got one among them");
  }
  EXPECT_FALSE(fs::exists(images / "checkpoints"));
  EXPECT_EQ(train_to(images / "runs/new", recipe).step, 1) << "a folder of its own is no class";
  EXPECT_EQ(train_to(images / "runs/new", recipe, true).step, 1) << "a run may go on";
}

TEST(Trainer, ARefusedRunLeavesNothingBehind) {
  const fs::path images = make_images(), folder = testing::scratch_folder();
  const std::string text = tiny_recipe(images);
  for (const char* setting : {"data.train=/nowhere", "model.init=/nowhere", "batch_size=1000",
                              "loss.distillation={\"teacher\": \"/nowhere\"}", "model.num_classes=7"}) {
    error_of([&] { train_to(folder / "runs/run", parse_recipe(text, "r.json", {setting})); });
    EXPECT_TRUE(fs::is_empty(folder)) << setting;
  }
  fs::create_directories(folder / "mine");
  error_of([&] { train_to(folder / "mine", parse_recipe(text, "r.json", {"data.train=/nowhere"})); });
  EXPECT_TRUE(fs::exists(folder / "mine") && fs::is_empty(folder / "mine")) << "a folder of the user";
}

TEST(Trainer, LearnsAnEasyDataset) {
  VITRAIL_SKIP_WITH_SANITIZER();
  const fs::path run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, parse_recipe(tiny_recipe(make_images(60)), "r.json",
                                 {"epochs=12", "augment={}", "model.drop_path_rate=0", "model.proj_drop_rate=0"}));
  EXPECT_GT(result.test->scores[0].value, 0.8);
}

TEST(Trainer, AResumedRunEndsLikeAnUninterruptedOne) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json");
  train_to(runs / "uninterrupted", recipe);
  for (const int stop : {1, 5, 6, 7, 13}) {  // after the first step, and around the end of an epoch
    const fs::path run = runs / std::to_string(stop);
    EXPECT_TRUE(train_to(run, recipe, false, stop).stopped);
    const TrainingResult result = train_to(run, recipe, true);
    EXPECT_FALSE(result.stopped);
    expect_same_runs(runs / "uninterrupted", run);
  }
}

TEST(Trainer, ResumesWithinAccumulatedBatches) {
  const fs::path runs = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"accumulate=4"});  // 6 batches: 4 and 2
  EXPECT_EQ(train_to(runs / "uninterrupted", recipe).step, 6);
  EXPECT_TRUE(train_to(runs / "resumed", recipe, false, 3).stopped);
  train_to(runs / "resumed", recipe, true);
  expect_same_runs(runs / "uninterrupted", runs / "resumed");
}

TEST(Trainer, ResumesFromThePreviousCheckpointIfTheLastIsDamaged) {
  const fs::path runs = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json");
  train_to(runs / "uninterrupted", recipe);
  train_to(runs / "resumed", recipe, false, 9);
  fs::resize_file(runs / "resumed/checkpoints/last.safetensors", 5000);
  Warnings warnings;
  train_to(runs / "resumed", recipe, true);
  EXPECT_TRUE(warnings.any("resuming from the previous one"));
  expect_same_runs(runs / "uninterrupted", runs / "resumed");
}

TEST(Trainer, AFinishedRunIsNotTestedAgain) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json");
  train_to(run, recipe);
  const std::string before = read_text(run / "metrics.csv");
  const TrainingResult again = train_to(run, recipe, true);
  EXPECT_TRUE(again.test.has_value());
  EXPECT_EQ(read_text(run / "metrics.csv"), before);
}

TEST(Trainer, ResumingWithAnotherRecipeListsTheDifferences) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train_to(run, parse_recipe(tiny_recipe(images), "r.json"), false, 3);
  const Recipe other = parse_recipe(tiny_recipe(images), "r.json", {"optimizer.lr=0.5", "data.in_flight=1"});
  const std::string message = error_of([&] { train_to(run, other, true); });
  EXPECT_TRUE(contains(message, "\n  optimizer.lr: 0.003 → 0.5")) << message;
  EXPECT_FALSE(contains(message, "in_flight")) << message;
  Warnings warnings;
  train(other, {.folder = run, .resume = true, .allow_changes = true, .threads = 1});
  EXPECT_TRUE(warnings.any("optimizer.lr: 0.003 → 0.5"));
  EXPECT_TRUE(warnings.any("threads: 2 → 1"));
}

TEST(Trainer, ResumingWithMoreEpochsTellsTheJumpOfTheLearningRateAndTestsAgain) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const TrainingResult first = train_to(run, parse_recipe(tiny_recipe(images), "r.json"));
  const double finished = first.test->loss;
  const Recipe longer = parse_recipe(tiny_recipe(images), "r.json", {"epochs=6", "schedule.warmup_epochs=0"});
  Warnings warnings;
  const TrainingResult result = train(longer, {.folder = run, .resume = true, .allow_changes = true, .threads = 2});
  // Cosine from 0.003: half of it in the middle of six epochs; at the end of three it was 0.
  EXPECT_TRUE(warnings.any("the learning rate of the next step is 0.0015, and would be 0 without the changes"));
  EXPECT_EQ(result.step, 36);
  EXPECT_TRUE(result.test.has_value());
  EXPECT_NE(result.test->loss, finished);
}

TEST(Trainer, ResumingWithTheSameScheduleTellsNoJump) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  train_to(run, parse_recipe(tiny_recipe(images), "r.json"), false, 8);
  Warnings warnings;
  train(parse_recipe(tiny_recipe(images), "r.json", {"loss.label_smoothing=0"}),
        {.folder = run, .resume = true, .allow_changes = true, .threads = 2});
  EXPECT_FALSE(warnings.any("the learning rate of the next step"));
}

TEST(Trainer, AModelWithNaNIsAnErrorBeforeTheFirstStep) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "first", parse_recipe(tiny_recipe(images), "r.json"));
  const models::OpenedModel opened = models::open_model(runs / "first/model");
  const models::VisionTransformer model = models::build_model(opened);
  std::vector<nn::NamedTensor> weights;
  for (const nn::NamedTensor& w : model.named_parameters()) weights.push_back({w.name, w.tensor.clone()});
  weights[3].tensor.data<float>()[1] = NAN;
  write_model(runs / "broken", models::write_model_config(opened.config), weights);
  const Recipe recipe =
      parse_recipe(tiny_recipe(images), "r.json", {"model={\"init\": \"" + (runs / "broken").string() + "\"}"});
  const std::string message = error_of([&] { train_to(runs / "second", recipe); });
  EXPECT_TRUE(contains(message, "broken") && contains(message, weights[3].name + ": expected finite numbers"))
      << message;
  EXPECT_FALSE(fs::exists(runs / "second/metrics.csv"));
}

TEST(Trainer, AFolderWithARunIsAnErrorWithoutResume) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json");
  train_to(run, recipe, false, 3);
  EXPECT_TRUE(contains(error_of([&] { train_to(run, recipe); }), "--resume"));
}

TEST(Trainer, ResumingInAnEmptyFolderStartsARun) {
  const fs::path run = testing::scratch_folder() / "run";
  EXPECT_EQ(train_to(run, parse_recipe(tiny_recipe(make_images()), "r.json"), true).step, 18);
}

TEST(Trainer, ABatchLargerThanTheDatasetIsAnError) {
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"batch_size=50"});
  const std::string message = error_of([&] { train_to(testing::scratch_folder() / "run", recipe); });
  EXPECT_TRUE(contains(message, "48")) << message;
}

TEST(Trainer, DivergenceIsAnErrorThatNamesTheFirstLayer) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json",
                                     {"optimizer.lr=1e30", "optimizer.name=sgd", "clip=0", "checkpoint.every_steps=1"});
  const std::string message = error_of([&] { train_to(run, recipe); });
  EXPECT_TRUE(contains(message, "expected a finite loss and finite gradients")) << message;
  EXPECT_TRUE(contains(message, "first not finite: the ")) << message;
  load_checkpoint(run / "checkpoints/last.safetensors");  // must be intact
}

TEST(Trainer, NonFiniteStepsCanBeSkipped) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe =
      parse_recipe(tiny_recipe(make_images()), "r.json",
                   {"optimizer.lr=1e30", "optimizer.name=sgd", "clip=0", "non_finite=skip", "ema=null"});
  const TrainingResult result = train_to(run, recipe);
  EXPECT_GT(result.skipped_steps, 0);
  EXPECT_EQ(result.step, 18);
}

TEST(Trainer, AnUnreadableImageIsAnErrorOrSkippedAndCounted) {
  const fs::path images = make_images();
  write_file(images / "train/red/07.png", "not an image");
  fs::remove(images / "train/red/08.png");
  write_file(images / "train/red/08.png", "");
  Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.holdout=3"});
  const std::string message = error_of([&] { train_to(testing::scratch_folder() / "stops", recipe); });
  EXPECT_TRUE(contains(message, "train/red/0")) << message;
  recipe.data.unreadable = data::Unreadable::replace;
  testing::Warnings warnings;
  const TrainingResult result = train_to(testing::scratch_folder() / "skips", recipe);
  EXPECT_GT(result.skipped_images, 0);
  EXPECT_EQ(result.epoch, 3);
  EXPECT_TRUE(warnings.any("train/red/07.png: cannot be read and is skipped") ||
              warnings.any("1 image cannot be read and is left out of the accuracies"));
}

TEST(Trainer, ImagesOfWhichNoneCanBeReadAreAnErrorBeforeAnythingIsWritten) {
  const fs::path folder = testing::scratch_folder(), list = folder / "list.csv";
  std::string rows;
  for (int i = 0; i < 12; ++i) rows += "gone/" + std::to_string(i) + (i % 2 == 0 ? ".png,cat\n" : ".png,dog\n");
  write_file(list, rows);
  for (const char* unreadable : {"data.unreadable=skip", "data.unreadable=error"}) {
    const Recipe recipe = parse_recipe(tiny_recipe(list), "r.json", {"data.val=\"\"", "data.holdout=2", unreadable});
    const std::string message = error_of([&] { train_to(folder / "run", recipe); });
    EXPECT_TRUE(message.starts_with(list.string() + ": expected training images that can be read, got none of 10 ("))
        << message;
    EXPECT_TRUE(contains(message, "gone/")) << message;
    EXPECT_TRUE(contains(message, "No such file")) << message;
    EXPECT_FALSE(fs::exists(folder / "run"));
  }
}

// The model would have a class that it never saw.
TEST(Trainer, AClassWithoutAReadableImageIsAnError) {
  const fs::path images = make_images();
  for (const auto& entry : fs::directory_iterator(images / "train/red")) write_file(entry.path(), "not an image");
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.holdout=3", "data.unreadable=skip"});
  const std::string message = error_of([&] { train_to(testing::scratch_folder() / "run", recipe); });
  EXPECT_TRUE(contains(message, "images that can be read in every class, got none of the ")) << message;
  EXPECT_TRUE(contains(message, "training images of red")) << message;
}

// One step of 32 of the 57 images cannot show all of a class.
TEST(Trainer, AClassWithoutAReadableImageIsAnErrorAfterAnEpochThatShowsOnlySome) {
  const fs::path images = make_images();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json",
                                     {"data.holdout=3", "data.unreadable=skip", "epochs=1", "batch_size=32"});
  for (const auto& entry : fs::directory_iterator(images / "train/red"))
    if (entry.path().filename() != "07.png") write_file(entry.path(), "not an image");
  EXPECT_EQ(train_to(testing::scratch_folder() / "run", recipe).epoch, 1);
  write_file(images / "train/red/07.png", "not an image");
  const std::string message = error_of([&] { train_to(testing::scratch_folder() / "run", recipe); });
  EXPECT_TRUE(contains(message, "images that can be read in every class, got none of the 19 training images of red"))
      << message;
}

TEST(Trainer, HeldOutImagesThatCannotBeReadAreNotCounted) {
  const fs::path images = make_images();
  fs::copy(images / "train", images / "val", fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(images / "val/red")) {
    write_file(entry.path(), "not an image");
    break;
  }
  const Recipe recipe =
      parse_recipe(tiny_recipe(images), "r.json",
                   {"data.holdout=null", "data.unreadable=skip", "data.val=\"" + images.string() + "\"", "epochs=1"});
  testing::Warnings warnings;
  const TrainingResult result = train_to(testing::scratch_folder() / "run", recipe);
  const auto count = std::distance(fs::recursive_directory_iterator(images / "val"), {}) - 3;  // three folders
  EXPECT_EQ(result.validation_images, count - 1);
  EXPECT_TRUE(warnings.any("1 image cannot be read and is left out of the accuracies"));
}

TEST(Trainer, CountsOfImagesAreTheSameAfterAResumption) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const auto spoil_one = [](const fs::path& folder) {
    write_file(fs::directory_iterator(folder)->path(), "not an image");
  };
  for (const char* color : {"red", "green", "blue"}) {
    for (int i = 10; i < 20; ++i) write_file(images / "train" / color / (std::to_string(i) + ".png"), "not an image");
  }
  spoil_one(images / "test/red");
  const Recipe recipe =
      parse_recipe(tiny_recipe(images), "r.json", {"data.unreadable=skip", "epochs=1", "data.holdout=24"});
  const TrainingResult result = train_to(run, recipe);
  const TrainingResult again = train_to(run, recipe, true);
  EXPECT_LT(result.validation_images, 24);
  EXPECT_EQ(result.test->images, 11);
  EXPECT_EQ(again.validation_images, result.validation_images);
  EXPECT_EQ(again.test->images, result.test->images);
  EXPECT_EQ(again.skipped_images, result.skipped_images);
}

TEST(Trainer, AnImageThatVanishesDuringTrainingIsNamed) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.keep_decoded_mb=0", "data.in_flight=1"});
  TrainerCallbacks callbacks;
  callbacks.stop = [&] {  // called after the first step
    fs::remove_all(images / "train/red");
    return false;
  };
  const std::string message = error_of([&] { train(recipe, {.folder = run, .threads = 1}, callbacks); });
  EXPECT_TRUE(contains(message, "train/red/") && contains(message, "No such file")) << message;
}

TEST(Trainer, AnImageThatBecomesUnreadableIsNamed) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"data.keep_decoded_mb=0"});
  train_to(run, recipe, false, 4);
  for (const char* color : {"red", "green", "blue"}) {
    for (int i = 10; i < 20; ++i) write_file(images / "train" / color / (std::to_string(i) + ".png"), "");
  }
  EXPECT_TRUE(contains(error_of([&] { train_to(run, recipe, true); }), ".png"));
  load_checkpoint(run / "checkpoints/last.safetensors");
}

TEST(Trainer, FrozenParametersStayAndALinearProbeTrainsOnlyTheHead) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "first", parse_recipe(tiny_recipe(images), "r.json"));
  const std::string init = (runs / "first/model").string();
  auto weights_after = [&](const std::string& name, const std::string& model) {
    const Recipe recipe =
        parse_recipe(tiny_recipe(images), "r.json", {"model={\"init\": \"" + init + "\", " + model + "}", "ema=null"});
    train_to(runs / name, recipe);
    std::map<std::string, Tensor> weights;
    for (const auto& w : load_checkpoint(runs / name / "checkpoints/last.safetensors").model)
      weights[w.name] = w.tensor;
    return weights;
  };
  const models::VisionTransformer before = models::build_model(models::open_model(init));
  const auto probed = weights_after("probe", "\"linear_probe\": true");
  const auto frozen = weights_after("frozen", "\"freeze\": [\"blocks.0.*\"]");
  for (const nn::NamedTensor& w : before.named_parameters()) {
    const bool unchanged_by_probe = static_cast<bool>(testing::close(probed.at(w.name), w.tensor, 0));
    EXPECT_EQ(unchanged_by_probe, !w.name.starts_with("head.")) << w.name;
    const bool unchanged_when_frozen = static_cast<bool>(testing::close(frozen.at(w.name), w.tensor, 0));
    EXPECT_TRUE(unchanged_when_frozen || !w.name.starts_with("blocks.0.")) << w.name;
  }
  EXPECT_FALSE(testing::close(frozen.at("blocks.1.mlp.fc1.weight"), before.parameter("blocks.1.mlp.fc1.weight"), 0));
}

TEST(Trainer, ActivationCheckpointingGivesTheSameBits) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const Recipe plain = parse_recipe(tiny_recipe(images), "r.json");
  Recipe checkpointed = plain;
  checkpointed.model.activation_checkpointing = true;
  train_to(runs / "plain", plain);
  train_to(runs / "checkpointed", checkpointed);
  expect_same_runs(runs / "plain", runs / "checkpointed");
}

TEST(Trainer, MixedPrecisionTrainsAndResumes) {
  const fs::path runs = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"precision=bf16"});
  train_to(runs / "uninterrupted", recipe);
  train_to(runs / "resumed", recipe, false, 8);
  train_to(runs / "resumed", recipe, true);
  expect_same_runs(runs / "uninterrupted", runs / "resumed");
}

TEST(Trainer, Bf16WithoutItsGemmIsSaidOnce) {
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"precision=bf16", "epochs=1"});
  int messages = 0;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& message) { messages += contains(message, "has no bf16 GEMM") ? 1 : 0; };
  train(recipe, {.folder = testing::scratch_folder() / "run", .threads = 1}, callbacks);
  EXPECT_EQ(messages, kernels::multiplies_bf16() ? 0 : 1);
}

// A student with the teacher's weights has nothing to learn from it.
TEST(Trainer, AStudentThatEqualsItsTeacherHasNoDistillationLoss) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "teacher", parse_recipe(tiny_recipe(images), "r.json"));
  const std::string teacher = (runs / "teacher/model").string();
  const Recipe recipe = parse_recipe(
      tiny_recipe(images), "r.json",
      {"loss.distillation={\"teacher\": \"" + teacher + "\", \"alpha\": 1}", "model={\"init\": \"" + teacher + "\"}",
       "model.drop_path_rate=0", "model.proj_drop_rate=0", "augment={}", "loss.label_smoothing=0", "optimizer.lr=0"});
  train_to(runs / "student", recipe);
  for (const double loss : train_column(runs / "student", Column::loss)) EXPECT_NEAR(loss, 0, 1e-5);
}

// The labels are wrong: what the student knows about the right classes it has from the teacher.
TEST(Trainer, LearnsFromATeacher) {
  VITRAIL_SKIP_WITH_SANITIZER();
  const fs::path images = make_images(40), runs = testing::scratch_folder();
  const std::vector<std::string> settings{"epochs=12", "augment={}", "model.drop_path_rate=0",
                                          "model.proj_drop_rate=0"};
  EXPECT_GT(train_to(runs / "teacher", parse_recipe(tiny_recipe(images), "r.json", settings)).test->scores[0].value,
            0.8);
  fs::rename(images / "train/red", images / "train/other");
  fs::rename(images / "train/green", images / "train/red");
  fs::rename(images / "train/blue", images / "train/green");
  fs::rename(images / "train/other", images / "train/blue");
  for (const char* kind : {"soft", "hard"}) {
    for (const int alpha : {0, 1}) {
      std::vector<std::string> distilled = settings;
      distilled.push_back("loss.distillation={\"teacher\": \"" + (runs / "teacher/model").string() +
                          "\", \"kind\": \"" + kind + "\", \"alpha\": " + std::to_string(alpha) + "}");
      distilled.insert(distilled.end(),
                       {"model.img_size=16", "data.holdout=0", "data.val=null", "data.test=" + images.string()});
      const double top1 =
          train_to(runs / (kind + std::to_string(alpha)), parse_recipe(tiny_recipe(images), "r.json", distilled))
              .test->scores[0]
              .value;
      EXPECT_EQ(top1 > 0.7, alpha == 1) << kind << " " << alpha << ": " << top1;
    }
  }
}

// The teacher runs once per view; a resumed run reads the cached logits of the interrupted one.
TEST(Trainer, ResumesWithCachedTeacherLogits) {
  VITRAIL_SKIP_WITH_SANITIZER();
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "teacher", parse_recipe(tiny_recipe(images), "r.json"));
  const std::string distillation =
      "loss.distillation={\"teacher\": \"" + (runs / "teacher/model").string() + "\", \"views\": 2}";
  for (const std::string view_epochs : {"null", "3"}) {
    const Recipe recipe =
        parse_recipe(tiny_recipe(images), "r.json",
                     {distillation, "loss.distillation.view_epochs=" + view_epochs, "augment.mixup=0",
                      "augment.plain_epochs=1", "epochs=5", "batch_size=9", "augment.policy=rand-m9"});
    const fs::path uninterrupted = runs / view_epochs;
    train_to(uninterrupted, recipe);
    for (const int stop : {4, 13, 17}) {
      const fs::path run = runs / (view_epochs + "-" + std::to_string(stop));
      EXPECT_TRUE(train_to(run, recipe, false, stop).stopped);
      train_to(run, recipe, true);
      expect_same_runs(uninterrupted, run);
    }
  }
  const fs::directory_iterator files(runs / "null/checkpoints");
  EXPECT_TRUE(std::any_of(begin(files), end(files),
                          [](const fs::directory_entry& entry) { return entry.path().extension() == ".cache"; }));
}

TEST(Trainer, ResumesWithPatchDropout) {
  const fs::path runs = testing::scratch_folder();
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"token_drop={\"until\": 0.5}"});
  train_to(runs / "uninterrupted", recipe);
  train_to(runs / "resumed", recipe, false, 10);
  train_to(runs / "resumed", recipe, true);
  expect_same_runs(runs / "uninterrupted", runs / "resumed");
}

TEST(Trainer, AFolderInUseIsAnError) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json");
  TrainerCallbacks callbacks;
  std::string message;
  callbacks.stop = [&] {
    message = error_of([&] { train(recipe, {.folder = run, .threads = 1}); });
    return true;
  };
  train(recipe, {.folder = run, .threads = 1}, callbacks);
  EXPECT_TRUE(contains(message, "no other run is writing to")) << message;
}

// Without a validation the last epoch would not keep its weights.
TEST(Trainer, ATimeLimitEndsWithAnEpochThatIsValidated) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"epochs=9", "validate_every=4"});
  const TrainingResult result = train(recipe, {.folder = run, .threads = 1, .time_limit = 1e-6});
  EXPECT_EQ(result.epoch, 2);
  EXPECT_EQ(result.best_epoch, 2);
  EXPECT_TRUE(result.best.has_value());
  EXPECT_TRUE(result.test.has_value());
}

TEST(Trainer, AProbeHasNoTimeLimit) {
  Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json");
  recipe.objective = "probe";
  EXPECT_EQ(error_of([&] { train(recipe, {.folder = testing::scratch_folder(), .threads = 1, .time_limit = 1.5}); }),
            "time_limit: expected none for the objective \"probe\", got 1.5 seconds");
}

}  // namespace
}  // namespace vitrail::train
