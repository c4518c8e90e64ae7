// SPDX-License-Identifier: Apache-2.0
// What a run says while it trains: its messages, the progress after each batch, and the rows of metrics.csv.
#include <cmath>

#include "tests/train/segment_fixture.h"
#include "vitrail/models/load.h"
#include "vitrail/models/sam/sam.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

struct Heard {
  TrainingResult result;
  std::vector<std::string> messages;
  std::vector<Progress> progress;
  std::vector<EpochResult> epochs;

  // "train 1/2 3/6": the phase, the epoch of the epochs, the step of the steps.
  std::vector<std::string> steps() const {
    const char* const names[] = {"train", "validate", "test", "features", "search"};
    std::vector<std::string> texts;
    for (const Progress& p : progress)
      texts.push_back(str(names[static_cast<int>(p.phase)], " ", p.epoch, "/", p.epochs, " ", p.step, "/", p.steps));
    return texts;
  }
};

Heard hear(const fs::path& run, const Recipe& recipe, int stop_after = 0, bool resume = false) {
  Heard heard;
  int steps = 0;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& message) { heard.messages.push_back(message); };
  callbacks.progress = [&](const Progress& progress) { heard.progress.push_back(progress); };
  callbacks.epoch = [&](const EpochResult& epoch) { heard.epochs.push_back(epoch); };
  if (stop_after > 0) callbacks.stop = [&] { return ++steps >= stop_after; };
  heard.result = train(recipe, {.folder = run, .resume = resume, .threads = 1}, callbacks);
  return heard;
}

TEST(RunMessages, NameTheModelTheSetsAndTheClasses) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"epochs=2"});
  const Heard first = hear(run, recipe, 8);
  EXPECT_TRUE(first.result.stopped);
  const int64_t parameters = prepare_model(recipe.model, {"blue", "green", "red"}, 0).model.num_parameters();
  const std::string folder = images.string();
  const std::vector<std::string> setup{
      str("vit, ", parameters, " parameters, 3 classes"),
      "training on 48 of 60 images of " + folder + "/train, 3 classes: blue, green, red",
      "training images of each class: blue: 16, green: 16, red: 16",
      "validating on 12 images held out of " + folder + "/train",
      "testing at the end on 12 images of " + folder + "/test, 3 classes: blue, green, red"};
  EXPECT_EQ(first.messages, setup);
  std::vector<std::string> resumed = setup;
  resumed.push_back("resumed at epoch 1, step 6");  // the stop came in the validation
  EXPECT_EQ(hear(run, recipe, 0, true).messages, resumed);
  std::vector<std::string> finished = setup;
  finished.push_back("resumed at epoch 3, step 12");
  EXPECT_EQ(hear(run, recipe, 0, true).messages, finished);
}

TEST(RunMessages, TellHowACheckpointWasAdapted) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  hear(runs / "first", parse_recipe(tiny_recipe(images), "r.json", {"epochs=1"}));
  const std::string init = (runs / "first/model").string();
  const std::vector<std::string> settings{"epochs=1", R"(model={"init": ")" + init + R"(", "depth": 1})",
                                          "data.val=null", "data.holdout=0"};
  const Heard second = hear(runs / "second", parse_recipe(tiny_recipe(images), "r.json", settings));
  ASSERT_EQ(second.messages.size(), 5u);
  EXPECT_EQ(second.messages[1], "from " + init + ": blocks: 0 of the checkpoint's 2");
  EXPECT_EQ(second.messages[2], "training on 60 images of " + images.string() + "/train, 3 classes: blue, green, red");
  EXPECT_EQ(second.messages[4], "no validation images: the last weights are kept");
  EXPECT_FALSE(second.result.test.has_value());
  EXPECT_EQ(second.result.validation_images, 0);
}

TEST(RunMessages, TellThatPatienceEndedTheRun) {
  const Recipe recipe =
      parse_recipe(tiny_recipe(make_images()), "r.json", {"epochs=30", "patience=2", "optimizer.lr=0.3", "ema=null"});
  const Heard heard = hear(testing::scratch_folder() / "run", recipe);
  ASSERT_LT(heard.result.epoch, 30);
  EXPECT_EQ(heard.messages.back(),
            str("ended after epoch ", heard.result.epoch, ": no better validation loss in 2 epochs"));
}

TEST(RunProgress, IsToldAfterEachBatchOfEachPhase) {
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json", {"epochs=2", "validate_every=2"});
  const Heard heard = hear(testing::scratch_folder() / "run", recipe);
  std::vector<std::string> expected;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (int step = 1; step <= 6; ++step) expected.push_back(str("train ", epoch, "/2 ", step, "/6"));
  }
  for (const char* step :
       {"validate 2/2 1/2", "validate 2/2 2/2", "validate 2/2 1/2", "validate 2/2 2/2", "test 2/2 1/2", "test 2/2 2/2"})
    expected.emplace_back(step);  // the weights, the average, and the test
  EXPECT_EQ(heard.steps(), expected);
  ASSERT_EQ(heard.epochs.size(), 2u);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    const Progress& last = heard.progress[6 * epoch + 5];
    EXPECT_EQ(last.loss, heard.epochs[epoch].train.loss);
    EXPECT_EQ(last.scores.at(0).value, heard.epochs[epoch].train.scores[0].value);
    EXPECT_EQ(heard.epochs[epoch].epoch, static_cast<int64_t>(epoch) + 1);
    EXPECT_EQ(heard.epochs[epoch].step, 6 * (static_cast<int64_t>(epoch) + 1));
    EXPECT_EQ(heard.epochs[epoch].validation.has_value(), epoch == 1);
    EXPECT_EQ(heard.epochs[epoch].best, epoch == 1);
  }
  EXPECT_LT(heard.epochs[0].seconds, heard.epochs[1].seconds);
  for (const Progress& p : heard.progress) {
    EXPECT_GT(p.images_per_second, 0);
    const bool done = p.step == p.steps && (p.phase != Progress::Phase::train || p.epoch == 2);
    EXPECT_EQ(p.seconds_left == 0, done);
  }
}

// After the run there is no validation set but the images that were held out: they are evaluated for the report.
TEST(RunProgress, WithoutTestImagesTheBestWeightsAreValidatedAtTheEnd) {
  const fs::path images = make_images();
  const Recipe recipe =
      parse_recipe(tiny_recipe(images / "train"), "r.json", {"epochs=1", "data.val=null", "ema=null", "batch_size=16"});
  const Heard heard = hear(testing::scratch_folder() / "run", recipe);
  EXPECT_EQ(heard.steps(), (std::vector<std::string>{"train 1/1 1/3", "train 1/1 2/3", "train 1/1 3/3",
                                                     "validate 1/1 1/1", "validate 1/1 1/1"}));
  EXPECT_FALSE(heard.result.test.has_value());
}

TEST(RunProgress, OfAStoppedRunEndsWithTheStep) {
  const Recipe recipe = parse_recipe(tiny_recipe(make_images()), "r.json");
  const Heard heard = hear(testing::scratch_folder() / "run", recipe, 3);
  EXPECT_TRUE(heard.result.stopped);
  EXPECT_EQ(heard.result.step, 3);
  EXPECT_EQ(heard.result.epoch, 0);
  EXPECT_EQ(heard.progress.size(), 2u) << "the last step is not told";
  EXPECT_FALSE(heard.result.best.has_value());
  EXPECT_FALSE(heard.result.last.has_value());
}

// Rows and columns of metrics.csv.
std::vector<std::vector<std::string>> table_of(const fs::path& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(read_text(csv));
  for (std::string line; std::getline(lines, line);) {
    rows.emplace_back();
    size_t begin = 0;
    for (size_t comma; (comma = line.find(',', begin)) != line.npos; begin = comma + 1)
      rows.back().push_back(line.substr(begin, comma - begin));
    rows.back().push_back(line.substr(begin));
  }
  return rows;
}

TEST(RunRows, AreMeansOfTheirIntervals) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  std::vector<std::vector<std::string>> each, second;
  Heard heard;
  for (const char* every : {"log_every=1", "log_every=2"}) {
    const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"epochs=14", every, "validate_every=14"});
    heard = hear(runs / every, recipe);
    (std::string(every).ends_with('1') ? each : second) = table_of(runs / every / "metrics.csv");
  }
  // Each of 84 steps has a row, or each second one.  The header is the first row.
  ASSERT_EQ(each.size(), 1u + 84 + 3);
  ASSERT_EQ(second.size(), 1u + 1 + 42 + 3);
  for (size_t i = 1; i <= 84; ++i) {
    char epochs[16];
    std::snprintf(epochs, sizeof epochs, "%.4f", static_cast<double>(i) / 6);
    EXPECT_EQ(each[i][0], "train");
    EXPECT_EQ(each[i][1], std::to_string(i));
    EXPECT_EQ(each[i][2], epochs);
    for (const size_t column : {3, 4, 6, 7, 8, 9, 10}) EXPECT_NE(each[i][column], "") << column;
    EXPECT_EQ(each[i][5], "") << "no top-5 of training";
  }
  const auto value = [](const std::vector<std::string>& row, size_t column) { return std::stod(row[column]); };
  EXPECT_EQ(second[1][1], "1");
  EXPECT_EQ(second[2][1], "2");
  for (size_t i = 3; i <= 43; ++i) {  // rows of two steps
    const size_t step = 2 * (i - 1);
    EXPECT_EQ(second[i][1], std::to_string(step));
    for (const size_t column : {3, 4, 7})
      EXPECT_NEAR(value(second[i], column), (value(each[step], column) + value(each[step - 1], column)) / 2, 1e-9)
          << column << ", step " << step;
    EXPECT_EQ(second[i][6], each[step][6]) << "the rate of the last step";
  }
  double loss = 0, top1 = 0;
  for (size_t i = 79; i <= 84; ++i) loss += value(each[i], 3) / 6, top1 += value(each[i], 4) / 6;
  EXPECT_NEAR(heard.epochs.back().train.loss, loss, 1e-9);
  EXPECT_NEAR(heard.epochs.back().train.scores[0].value, top1, 1e-9);
  const EpochResult& last = heard.epochs.back();
  const auto expect_row = [&](const std::vector<std::string>& row, const char* event, const Evaluation& evaluation) {
    EXPECT_EQ(row[0], event);
    EXPECT_EQ(row[1], "84");
    EXPECT_EQ(row[2], "14.0000");
    EXPECT_EQ(value(row, 3), evaluation.loss);
    EXPECT_EQ(value(row, 4), evaluation.scores[0].value);
    EXPECT_EQ(value(row, 5), evaluation.scores[1].value);
    for (const size_t column : {6, 7, 8, 9}) EXPECT_EQ(row[column], "") << event << " " << column;
  };
  expect_row(second[44], "val", *last.validation);
  expect_row(second[45], "val_ema", *last.average);
  expect_row(second[46], "test", *heard.result.test);
  EXPECT_EQ(heard.result.last->value, last.validation->scores[0].value);
}

TEST(SegmentProgress, AndMessagesNameTheModelAndTheSets) {
  const fs::path instances = make_instances(6, 2), run = testing::scratch_folder() / "run";
  const Recipe recipe = parse_recipe(tiny_segment_recipe(instances), "r.json",
                                     {"data.test=" + instances.string(), "data.test_split=val", "validate_every=2"});
  const Heard heard = hear(run, recipe);
  const int64_t parameters = models::load_sam(run / "model").num_parameters();
  const std::string folder = instances.string();
  ASSERT_EQ(heard.messages.size(), 4u);
  EXPECT_EQ(heard.messages[0],
            str("Segment Anything at 32×32, encoder 32 wide with 2 blocks, ", parameters, " parameters"));
  EXPECT_TRUE(heard.messages[1].starts_with("training on 6 images of " + folder)) << heard.messages[1];
  EXPECT_TRUE(heard.messages[2].starts_with("validating on 2 images of " + folder)) << heard.messages[2];
  EXPECT_TRUE(heard.messages[3].starts_with("testing at the end on 2 images of " + folder)) << heard.messages[3];
  std::vector<std::string> expected;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    for (int step = 1; step <= 2; ++step) expected.push_back(str("train ", epoch, "/2 ", step, "/2"));
  }
  for (const char* step :
       {"validate 2/2 1/2", "validate 2/2 2/2", "validate 2/2 1/2", "validate 2/2 2/2", "test 2/2 1/2", "test 2/2 2/2"})
    expected.emplace_back(step);
  EXPECT_EQ(heard.steps(), expected);
  ASSERT_EQ(heard.epochs.size(), 2u);
  EXPECT_EQ(heard.progress[1].loss, heard.epochs[0].train.loss);
  EXPECT_EQ(heard.progress[3].loss, heard.epochs[1].train.loss);
  EXPECT_TRUE(heard.progress[1].scores.empty() && heard.epochs[0].train.scores.empty());
  EXPECT_EQ(heard.progress[3].seconds_left, 0);
  EXPECT_GT(heard.progress[1].seconds_left, 0);
  EXPECT_FALSE(heard.epochs[0].validation.has_value() || heard.epochs[0].best);
  const EpochResult& last = heard.epochs[1];
  EXPECT_TRUE(last.validation.has_value() && last.average.has_value());
  EXPECT_EQ(last.validation->images, 2);
  EXPECT_EQ(heard.result.last->value, last.validation->scores[0].value);
  EXPECT_EQ(heard.result.test->images, 2);
  // The images of the test are those of the validation.
  const bool average =
      heard.result.best->value == last.average->scores[0].value && last.average->loss < last.validation->loss;
  const Evaluation& kept = average ? *last.average : *last.validation;
  EXPECT_EQ(heard.result.best->value, kept.scores[0].value);
  EXPECT_EQ(heard.result.test->loss, kept.loss);
  EXPECT_EQ(heard.result.test->scores[1].value, kept.scores[1].value);
  const auto rows = table_of(run / "metrics.csv");
  ASSERT_EQ(rows.size(), 1u + 4 + 3);
  EXPECT_EQ(rows[1][2], "0.5000");
  EXPECT_EQ(rows[4][2], "2.0000");
  EXPECT_EQ(rows[1][4] + rows[1][5], "");
  EXPECT_NEAR((4 * std::stod(rows[3][3]) + 2 * std::stod(rows[4][3])) / 6, last.train.loss, 1e-9);
  EXPECT_EQ(rows[5][0], "val");
  EXPECT_EQ(rows[6][0], "val_ema");
  EXPECT_EQ(rows[7][0], "test");
  EXPECT_EQ(rows[7][1], "4");
  EXPECT_EQ(std::stod(rows[7][5]), heard.result.test->scores[1].value);
  const Heard again = hear(run, recipe, 0, true);
  EXPECT_EQ(again.messages.back(), "resumed at epoch 3, step 4");
  EXPECT_EQ(again.result.test->scores[0].value, heard.result.test->scores[0].value);
}

TEST(SegmentMessages, TellOfAnEndByPatienceAndOfTheLastWeights) {
  const fs::path instances = make_instances(4, 2), runs = testing::scratch_folder();
  const Heard without = hear(runs / "a", parse_recipe(tiny_segment_recipe(instances), "r.json",
                                                      {"data.val=\"\"", "data.holdout=0", "epochs=1"}));
  EXPECT_EQ(without.messages.back(), "no validation images: the last weights are kept");
  EXPECT_FALSE(without.result.best.has_value());
  EXPECT_EQ(without.result.best_epoch, 1);
  const Heard patient = hear(runs / "b", parse_recipe(tiny_segment_recipe(instances), "r.json",
                                                      {"epochs=30", "patience=2", "optimizer.lr=1", "ema=null"}));
  ASSERT_LT(patient.result.epoch, 30);
  EXPECT_EQ(patient.messages.back(),
            str("ended after epoch ", patient.result.epoch, ": no better validation loss in 2 epochs"));
  EXPECT_EQ(patient.result.epoch, patient.result.best_epoch + 2);
}

TEST(ProbeProgress, AndMessagesNameEachPhase) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const std::string model = testing::fixture("models/timm_token").string();
  const std::string folder = images.string();
  const Recipe recipe = parse_recipe(R"({"objective": "probe", "model": {"init": ")" + model +
                                         R"("}, "batch_size": 16, "data": {"train": ")" + folder + R"(", "test": ")" +
                                         folder + R"(", "holdout": 15}})",
                                     "r.json");
  const Heard heard = hear(run, recipe);
  ASSERT_EQ(heard.messages.size(), 6u);
  const std::string architecture = models::open_model(run / "model").config.architecture;
  EXPECT_EQ(heard.messages[0],
            str(architecture, ", ", models::build_model(models::open_model(run / "model")).num_parameters(),
                " parameters, 3 classes"));
  EXPECT_EQ(heard.messages[1],
            "computing features of 45 of 60 images of " + folder + "/train, 3 classes: blue, green, red");
  EXPECT_EQ(heard.messages[2], "training images of each class: blue: 15, green: 15, red: 15");
  EXPECT_EQ(heard.messages[3], "validating on 15 images held out of " + folder + "/train");
  EXPECT_EQ(heard.messages[4], "testing at the end on 12 images of " + folder + "/test, 3 classes: blue, green, red");
  EXPECT_TRUE(heard.messages[5].starts_with("5-fold cross-validation of 10 penalties: C ")) << heard.messages[5];
  EXPECT_TRUE(contains(heard.messages[5], " % of 45 images (95 % interval ")) << heard.messages[5];
  std::vector<std::string> expected{"features 1/1 1/3", "features 1/1 2/3", "features 1/1 3/3"};
  for (int fit = 1; fit <= 50; ++fit) expected.push_back(str("search 1/1 ", fit, "/50"));
  for (const char* step : {"validate 1/1 1/1", "test 1/1 1/1"}) expected.emplace_back(step);
  EXPECT_EQ(heard.steps(), expected);
  for (const Progress& p : heard.progress) {
    EXPECT_EQ(p.images_per_second > 0, p.phase != Progress::Phase::search);
    EXPECT_EQ(p.seconds_left == 0, p.step == p.steps);
  }
  const TrainingResult& result = heard.result;
  EXPECT_EQ(result.epoch, 1);
  EXPECT_EQ(result.validation_images, 15);
  EXPECT_EQ(result.test->images, 12);
  EXPECT_EQ(result.cross_validated->images, 45);
  EXPECT_EQ(result.skipped_images, 0);
  EXPECT_GT(result.seconds, 0);
  const auto rows = table_of(run / "metrics.csv");
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(rows[i][1], std::to_string(result.step));
    EXPECT_EQ(rows[i][2], "1.0000");
    EXPECT_EQ(rows[i][5] + rows[i][6] + rows[i][7], "");
    EXPECT_NE(rows[i][10], "");
  }
  EXPECT_GT(result.step, 1);
  EXPECT_EQ(std::stod(rows[2][4]), result.best->value);
  EXPECT_EQ(std::stod(rows[3][3]), result.test->loss);
  EXPECT_EQ(std::stod(rows[3][4]), result.test->scores[0].value);
}

}  // namespace
}  // namespace vitrail::train
