// SPDX-License-Identifier: Apache-2.0
// What train tells at each epoch and at the end, of each kind of model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <regex>

#include "tests/apps/cli_fixture.h"
#include "tests/apps/metric_rows.h"
#include "tests/apps/option_effects.h"
#include "tests/apps/shell.h"
#include "tests/train/segment_fixture.h"
#include "tests/train/training_fixture.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/trainer.h"

namespace vitrail::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string line_that_begins(const std::string& text, const std::string& start) {
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with(start)) return line;
  }
  ADD_FAILURE() << start << " begins no line of " << text;
  return "";
}

TEST(TrainEnd, TellsTheHeldOutAndTheTestAccuracyAndWhereTheModelIs) {
  const fs::path images = train::make_images(8, 3), folder = scratch_folder();
  train::write_file(folder / "recipe.json", train::tiny_recipe(images));
  const ProgramResult result =
      run({"train", folder / "recipe.json", "-o", folder / "./a run/", "--threads", "1", "--set", "data.holdout=6"});
  const json object = json_lines(result.out).at(0);
  EXPECT_EQ(object["run"], (folder / "./a run/").string());
  const std::string run_folder = folder / "a run/";
  std::vector<std::string> lines = lines_of(result.err);
  ASSERT_GE(lines.size(), 5U);
  const std::vector<std::string> end(lines.end() - 5, lines.end());
  EXPECT_EQ(end[0], str("best weights: epoch ", object["best_epoch"].get<int>(), ", held-out top-1 ",
                        data::accuracy_text(object["held_out_top1"], 6)));
  EXPECT_EQ(end[1], "test top-1 " + data::accuracy_text(object["test_top1"], 9));
  EXPECT_EQ(end[2], "model: " + run_folder + "model");
  EXPECT_EQ(end[3], "report: " + run_folder + "report.html");
  EXPECT_EQ(end[4], "next: vitrail classify -m '" + run_folder + "model' IMAGE");
  // The line of each epoch; at least one is the best so far.
  int best = 0;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    const std::string line = line_that_begins(result.err, "epoch   " + std::to_string(epoch) + "  step ");
    EXPECT_TRUE(std::regex_match(
        line, std::regex("epoch   [123]  step  +[0-9]+  loss [0-9]+[.][0-9]{4}  top-1 +[0-9.]+ %  validation: loss "
                         "[0-9]+[.][0-9]{4}  top-1 +[0-9.]+ % [(][0-9.]+ to [0-9.]+ of 6[)]  EMA +[0-9.]+ % [(][0-9.]+ "
                         "to [0-9.]+ of 6[)]  [0-9]+:[0-9]{2}(  best)?")))
        << line;
    best += line.ends_with("  best") ? 1 : 0;
    if (line.ends_with("  best")) {
      EXPECT_GE(epoch, 1);
    }
  }
  EXPECT_GE(best, 1);
  const ProgramResult quiet =
      run({"train", folder / "recipe.json", "-o", folder / "quiet", "--threads", "1", "--quiet"});
  EXPECT_EQ(quiet.err, "");
}

TEST(TrainEnd, OfSegmentationTellsTheMeanIoU) {
  const fs::path instances = train::make_instances(8, 4), folder = scratch_folder();
  train::write_file(folder / "recipe.json", train::tiny_segment_recipe(instances));
  const ProgramResult result =
      run({"train", folder / "recipe.json", "-o", folder / "run", "--data", instances, "--threads", "1"});
  const json object = json_lines(result.out).at(0);
  std::string metric;
  for (const auto& [key, value] : object.items()) {
    if (key.starts_with("held_out_") && value.is_number_float()) metric = key;
  }
  ASSERT_NE(metric, "") << object;
  const std::vector<std::string> lines = lines_of(result.err);
  EXPECT_EQ(line_that_begins(result.err, "best weights: "),
            str("best weights: epoch ", object["best_epoch"].get<int>(), ", held-out mean IoU ",
                formatted("%.4f", object[metric]), " for a click on 4 images"));
  EXPECT_EQ(lines.back(), "next: vitrail segment -m " + (folder / "run/model").string() + " IMAGE --point X,Y");
  for (const char* epoch : {"epoch   1  step ", "epoch   2  step "}) {
    const std::string line = line_that_begins(result.err, epoch);
    EXPECT_TRUE(std::regex_match(
        line, std::regex("epoch   [12]  step  +[0-9]+  loss [0-9]+[.][0-9]{4}  validation: loss [0-9.]+  mean IoU "
                         "[0-9.]{6} for a click, [0-9.]{6} for a box, 4 images  EMA [0-9.]{6}, [0-9.]{6}  "
                         "[0-9]+:[0-9]{2}(  best)?")))
        << line;
  }
  // The numbers are those of metrics.csv.
  bool compared = false;
  for (const auto& row : metric_rows(folder / "run")) {
    if (row.at("event") != "val" || std::stod(row.at("epoch")) != 2) continue;
    compared = true;
    EXPECT_TRUE(contains(line_that_begins(result.err, "epoch   2"),
                         "validation: loss " + formatted("%.4f", std::stod(row.at("loss"))) + "  mean IoU "))
        << row.at("loss");
  }
  EXPECT_TRUE(compared);
}

// A dataset of several labels per image.
fs::path labelled_images() {
  const fs::path images = train::make_images(8, 2), root = scratch_folder();
  for (const auto& [split, count] : {std::pair("train", 8), std::pair("test", 2)}) {
    std::ofstream list(root / (std::string(split) + ".csv"));
    list << "file,labels\n";
    for (const char* color : {"blue", "green", "red"}) {
      for (int i = 0; i < count; ++i) {
        const std::string name = "0" + std::to_string(i) + ".png", copy = std::string(split) + "_" + color + name;
        fs::copy_file(images / split / color / name, root / copy);
        list << copy << "," << color << (i % 2 == 0 ? "|even" : "") << "\n";
      }
    }
  }
  return root;
}

TEST(TrainEnd, OfSeveralLabelsTellsTheMeanAveragePrecision) {
  const fs::path root = labelled_images(), folder = scratch_folder();
  train::write_file(folder / "recipe.json",
                    R"({"model": {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 1, "num_heads": 2},
                        "data": {"train": ")" +
                        (root / "train.csv").string() + R"(", "test": ")" + (root / "test.csv").string() +
                        R"(", "workers": 1}, "epochs": 3, "batch_size": 8, "optimizer": {"lr": 1e-2}, "loss": "bce",
                        "ema": {"decay": 0.8}, "log_every": 1})");
  const ProgramResult result =
      run({"train", folder / "recipe.json", "-o", folder / "run", "--threads", "1", "--set", "data.holdout=6"});
  const json object = json_lines(result.out).at(0);
  EXPECT_EQ(line_that_begins(result.err, "best weights: "),
            str("best weights: epoch ", object["best_epoch"].get<int>(), ", held-out mean average precision ",
                formatted("%.4f", object["held_out_map"]), " on 6 images"));
  EXPECT_EQ(line_that_begins(result.err, "test "),
            "test mean average precision " + formatted("%.4f", object["test_map"]) + " on 6 images");
  const std::string line = line_that_begins(result.err, "epoch   3  step ");
  EXPECT_TRUE(
      std::regex_match(line, std::regex("epoch   3  step  +[0-9]+  loss [0-9.]+  validation: loss [0-9.]+  mAP "
                                        "[0-9.]{6}  F1 [0-9.]{6} of 6  EMA [0-9.]{6}  [0-9]+:[0-9]{2}(  best)?")))
      << line;
  EXPECT_FALSE(contains(result.err, "top-1")) << result.err;
}

// A signal ends the run after a step, which is said with what continues it.
TEST(TrainStop, TellsTheStepTheEpochAndHowToContinue) {
  const fs::path images = train::make_images(40, 2), folder = scratch_folder();
  train::write_file(folder / "recipe.json", train::tiny_recipe(images));
  ::setenv("D", folder.c_str(), 1);
  EXPECT_EQ(shell("$V train $D/recipe.json -o $D/run --threads 1 --set epochs=100000 >$D/out 2>$D/err & "
                  "while kill -0 $! && ! test -s $D/run/metrics.csv; do sleep 0.1; done; kill -TERM $!; wait $!"),
            1);
  const std::string last = lines_of(content_of(folder / "err")).back();
  std::smatch parts;
  ASSERT_TRUE(std::regex_match(
      last, parts, std::regex("vitrail: error: stopped after step ([0-9]+), epoch ([0-9]+); continue with --resume")))
      << last;
  const int64_t steps_of_epoch = (3 * 40 - 12) / 8;  // a held-out part of twelve, batches of eight
  const int64_t step = std::stoll(parts[1]), epoch = std::stoll(parts[2]);
  EXPECT_GE(epoch, (step - 1) / steps_of_epoch + 1) << last;
  EXPECT_LE(epoch, step / steps_of_epoch + 1) << last << ": after the last step of an epoch, the next one";
  EXPECT_EQ(content_of(folder / "out"), "");
}

TEST(TrainFolds, TellTheMeanOverTheFolds) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder() / "run";
  const ProgramResult result =
      run({"train", images, "-o", folder, "-m", small_model(), "--threads", "1", "--epochs", "1", "--folds", "3",
           "--set", "model.head=drawn"});  // a head that errs in some folds
  const json object = json_lines(result.out).at(0),
             validation = json::parse(content_of(folder / "cross_validation.json"));
  EXPECT_EQ(object["folds"], 3);
  EXPECT_EQ(object["cross_validated_top1"], validation["mean"]);
  const json interval = object["cross_validated_top1_interval"];
  ASSERT_EQ(interval.size(), 2U);
  EXPECT_LE(interval[0], object["cross_validated_top1"]);
  EXPECT_GE(interval[1], object["cross_validated_top1"]);
  EXPECT_LT(interval[0], interval[1]);
  EXPECT_EQ(object["run"], folder.string());
  // The recipe is one for all images: none is held out, and no epoch ends the training early.
  EXPECT_TRUE(contains(result.err, "recipe: batch size 4, 4 steps an epoch of 18 images\n")) << result.err;
  EXPECT_TRUE(contains(result.err, "recipe: 1 epoch, all of them: cross-validation measures the last weights\n"))
      << result.err;
}

// Options that come first in the recipe can be overridden by --set.
TEST(TrainSettings, HaveTheOrderDataModelExifSet) {
  const fs::path images = train::make_images(6, 2), other = train::make_images(7, 2), folder = scratch_folder();
  train::write_file(folder / "recipe.json", train::tiny_recipe(images));
  run({"train", folder / "recipe.json", "-o", folder / "run", "--threads", "1", "--data", images, "--exif", "--set",
       "epochs=1", "--set", "data.holdout=3", "--set", "data.train=" + other.string(), "--set", "data.exif=false"});
  const json recipe = json::parse(content_of(folder / "run/recipe.json"));
  EXPECT_EQ(recipe["data"]["train"], other.string());
  EXPECT_EQ(recipe["data"]["exif"], false);
  EXPECT_EQ(recipe["epochs"], 1);
  run({"train", folder / "recipe.json", "-o", folder / "exif", "--threads", "1", "--exif", "--set", "epochs=1", "--set",
       "data.holdout=3"});
  EXPECT_EQ(json::parse(content_of(folder / "exif/recipe.json"))["data"]["exif"], true);
}

TEST(TrainSettings, AreToldBesideTheChoicesThatTheyChange) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder();
  const Arguments arguments{"train", images, "-m", small_model(), "--threads", "1", "--epochs", "1"};
  EXPECT_FALSE(contains(run(arguments + Arguments{"-o", folder / "a"}).err, "by option"));
  const std::string told = run(arguments + Arguments{"-o", folder / "b", "--exif", "--set", "data.holdout=0", "--set",
                                                     "batch_size=2", "--set", "data.workers=1"})
                               .err;
  EXPECT_TRUE(contains(told,
                       "\nrecipe: by option, batch_size: 4 → 2\n"
                       "recipe: by option, data.exif: false → true\n"
                       "recipe: by option, data.holdout: null → 0\n"))
      << told;
  EXPECT_FALSE(contains(told, "data.workers"));
}

// The choice of a preset is that of its recipe.
TEST(TrainPreset, ScratchIsANewModel) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder();
  const ProgramResult result =
      run({"train", images, "-o", folder / "run", "--preset", "scratch", "--epochs", "1", "--threads", "1"});
  const json recipe = json::parse(content_of(folder / "run/recipe.json"));
  EXPECT_TRUE(!recipe["model"].contains("init") || recipe["model"]["init"].is_null() || recipe["model"]["init"] == "")
      << recipe["model"];
  EXPECT_TRUE(contains(result.err, "\nrecipe: ") || result.err.starts_with("recipe: ")) << result.err;
}

// The number of epochs that the time permitted at first is kept.
TEST(TrainTime, AResumedRunHasItsEpochs) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder() / "run";
  const Arguments arguments{"train", images, "-o", folder, "-m", small_model(), "--threads", "1", "--quiet"};
  EXPECT_EQ(json_of(arguments + Arguments{"--time", "0.000001s"})["epochs"], 1);
  EXPECT_EQ(json_of(arguments + Arguments{"--time", "50h", "--resume"})["epochs"], 1);
}

// A slow machine has reduced the epochs after patience and warm-up followed from more of them.  The same command
// continues the run; --set may still change it.
TEST(TrainTime, ARunWithFewerEpochsThanExpectedIsResumedByItsOwnCommand) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder() / "run";
  const train::Recipe recipe =
      train::default_recipe({.data = images.string(), .model = small_model(), .epochs = 20}).recipe;
  train::train(recipe, {.folder = folder, .threads = 1, .time_limit = 1e-6});
  const json shortened = json::parse(content_of(folder / "recipe.json"));
  ASSERT_EQ(shortened["epochs"], 1);
  ASSERT_EQ(shortened["patience"], 10);
  const Arguments arguments{"train",     images, "-o",      folder,   "-m",     small_model(),
                            "--threads", "1",    "--quiet", "--time", "0.001s", "--resume"};
  EXPECT_EQ(json_of(arguments)["epochs"], 1);
  EXPECT_EQ(json::parse(content_of(folder / "recipe.json")), shortened);
  EXPECT_TRUE(contains(refusal(arguments + Arguments{"--set", "patience=7"}), "patience: 10 → 7"));
}

TEST(TrainTime, AResumedFoldHasItsEpochs) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder() / "run";
  const Arguments arguments{"train", images / "train", "-o",      folder, "-m", small_model(), "--threads",
                            "1",     "--quiet",        "--folds", "2"};
  EXPECT_EQ(json_of(arguments + Arguments{"--time", "0.000001s"})["epochs"], 1);
  for (const char* later : {"folds/2", "model", "last", "checkpoints", "recipe.json", "summary.json", "metrics.csv",
                            "report.html", "tensorboard", "cross_validation.json"})
    fs::remove_all(folder / later);  // stopped after the first fold
  EXPECT_EQ(json_of(arguments + Arguments{"--time", "50h", "--resume"})["epochs"], 1);
}

TEST(TrainTime, AModelWithoutAHeadGetsOneBeforeItIsTimed) {
  const fs::path images = train::make_images(6, 2), folder = scratch_folder() / "run";
  EXPECT_EQ(json_of({"train", images, "-o", folder, "-m", fixture("models/timm_num_classes_0"), "--threads", "1",
                     "--quiet", "--time", "0.000001s"})["epochs"],
            1);
}

}  // namespace
}  // namespace vitrail::testing
