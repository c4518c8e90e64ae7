// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/cross_validation.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/train/training_fixture.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {
namespace {

Recipe fold_recipe(const fs::path& images, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"data.val=\"\"", "data.holdout=null", "epochs=2"};
  settings.insert(settings.end(), more.begin(), more.end());
  return parse_recipe(tiny_recipe(images), "r.json", settings);
}

// scipy: stats.t.interval(0.95, 3, loc=mean, scale=stats.sem(values))
TEST(MeanInterval, IsStudents) {
  const MeanInterval result = mean_interval(std::vector<double>{0.9, 0.8, 0.7, 0.75});
  EXPECT_NEAR(result.mean, 0.7875, 1e-15);
  EXPECT_NEAR(result.deviation, 0.08539125638299666, 1e-15);
  EXPECT_NEAR(result.interval.low, 0.6516234558101992, 1e-12);
  EXPECT_NEAR(result.interval.high, 0.923376544189801, 1e-12);
  EXPECT_EQ(mean_interval(std::vector<double>{0.2, 0.9}).interval.low, 0);
  EXPECT_EQ(mean_interval(std::vector<double>{0.2, 0.9}).interval.high, 1);
  EXPECT_THROW(mean_interval(std::vector<double>{0.2}), Error);
}

TEST(CrossValidation, EachImageIsHeldOutOnce) {
  const fs::path images = make_images(7) / "train";  // 21 images
  std::set<int64_t> held_out;
  for (int fold = 1; fold <= 4; ++fold) {
    const RunData data = open_data(fold_recipe(images, {"data.folds=4", "data.fold=" + std::to_string(fold)}).data, 3);
    EXPECT_GE(data.validation.size(), 5);
    EXPECT_EQ(data.train.size() + data.validation.size(), 21);
    for (const int64_t sample : data.validation.samples) EXPECT_TRUE(held_out.insert(sample).second);
  }
  EXPECT_EQ(held_out.size(), 21u);
}

TEST(CrossValidation, MeasuresTheLastWeightsAndTrainsOnAllImages) {
  const fs::path images = make_images() / "train", run = testing::scratch_folder() / "run";
  const CrossValidationResult result = cross_validate(fold_recipe(images), 3, {.folder = run, .threads = 1});
  ASSERT_EQ(result.folds.size(), 3u);
  EXPECT_EQ(result.images, 60);
  EXPECT_FALSE(result.final.best.has_value());  // nothing was held out
  EXPECT_EQ(result.mean.mean, mean_interval(result.folds).mean);
  for (const char* file : {"folds/1/model/config.json", "folds/3/report.html", "model/config.json", "report.html"})
    EXPECT_TRUE(fs::exists(run / file)) << file;
  const auto json = nlohmann::json::parse(read_text(run / "cross_validation.json"));
  EXPECT_EQ(json["top1"].get<std::vector<double>>(), result.folds);
  EXPECT_EQ(json["interval"][0], result.mean.interval.low);
  EXPECT_EQ(nlohmann::json::parse(read_text(run / "summary.json"))["training_images"], 60);
  EXPECT_TRUE(contains(read_text(run / "model/README.md"), "- 3-fold cross-validation: mean top-1 "));
  const auto again = cross_validate(fold_recipe(images), 3, {.folder = testing::scratch_folder() / "b", .threads = 1});
  EXPECT_EQ(again.folds, result.folds);
}

TEST(CrossValidation, AStoppedOneResumes) {
  const fs::path images = make_images() / "train", run = testing::scratch_folder() / "run";
  const CrossValidationResult expected =
      cross_validate(fold_recipe(images), 2, {.folder = testing::scratch_folder() / "whole", .threads = 1});
  int steps = 0;
  const TrainerCallbacks stop{.stop = [&] { return ++steps == 9; }};  // in the first epochs of the second fold
  EXPECT_TRUE(cross_validate(fold_recipe(images), 2, {.folder = run, .threads = 1}, stop).final.stopped);
  const auto resumed = cross_validate(fold_recipe(images), 2, {.folder = run, .resume = true, .threads = 1});
  EXPECT_EQ(resumed.folds, expected.folds);
  EXPECT_FALSE(resumed.final.stopped);
}

// The time limit reduces the epochs of the first fold alone, and its warm-up with them.
TEST(CrossValidation, AResumedFoldHasTheEpochsThatItsTimePermitted) {
  const fs::path images = make_images(6) / "train", run = testing::scratch_folder() / "run";
  const auto recipe_of = [&](const char* epochs) { return fold_recipe(images, {epochs, "schedule.warmup_epochs=3"}); };
  bool second = false;
  const TrainerCallbacks stop{.message = [&](const std::string& text) { second |= contains(text, "fold 2"); },
                              .stop = [&] { return second; }};
  EXPECT_TRUE(
      cross_validate(recipe_of("epochs=4"), 2, {.folder = run, .threads = 1, .time_limit = 1e-6}, stop).final.stopped);
  std::string told;
  const TrainerCallbacks tell{.message = [&](const std::string& text) { told += text + "\n"; }};
  cross_validate(recipe_of("epochs=6"), 2, {.folder = run, .resume = true, .threads = 1, .time_limit = 1e6}, tell);
  EXPECT_TRUE(contains(told, "fold 1 keeps its number of epochs, 2\n")) << told;
  const auto epochs = [&](const char* folder) {
    const Recipe of_run = read_recipe(run / folder / "recipe.json");
    return std::pair(of_run.epochs, of_run.schedule.warmup_epochs);
  };
  // The one after which the time is known, and one that measures its weights.
  EXPECT_EQ(epochs("folds/1"), std::pair(int64_t{2}, 2.0));
  EXPECT_EQ(epochs("folds/2"), std::pair(int64_t{4}, 3.0));
  EXPECT_EQ(epochs(""), std::pair(int64_t{6}, 3.0)) << "the model of all images begins now";
}

TEST(CrossValidation, OtherHeldOutImagesAreErrors) {
  const fs::path images = make_images(4), run = testing::scratch_folder() / "run";
  const auto refusal = [&](const Recipe& recipe, int64_t folds) {
    return error_of([&] { cross_validate(recipe, folds, {.folder = run, .threads = 1}); });
  };
  EXPECT_TRUE(contains(refusal(fold_recipe(images), 1), "folds: expected 2 to 20, got 1"));
  EXPECT_TRUE(contains(refusal(fold_recipe(images, {"data.holdout=3"}), 2), "got a hold-out"));
  EXPECT_TRUE(contains(refusal(fold_recipe(images, {"data.val=" + images.string()}), 2), "no validation images"));
  EXPECT_TRUE(contains(refusal(fold_recipe(images), 13), "folds: expected 2 to the 12 images"));
  EXPECT_FALSE(fs::exists(run));
  EXPECT_TRUE(
      contains(error_of([&] { fold_recipe(images, {"data.folds=3"}); }), "data.fold: expected 1 to data.folds"));
  EXPECT_TRUE(contains(error_of([&] {
                         fold_recipe(images, {"data.folds=3", "data.fold=1", "data.holdout=2"});
                       }),
                       "data.folds: expected neither"));
}

// The distribution function of Student's t with this number of degrees of freedom, by Simpson's rule.
double student(double t, int freedom) {
  const double n = freedom;
  const double scale = std::exp(std::lgamma((n + 1) / 2) - std::lgamma(n / 2)) / std::sqrt(n * std::acos(-1.0));
  const auto density = [&](double x) { return scale * std::pow(1 + x * x / n, -(n + 1) / 2); };
  constexpr int kParts = 20000;
  double sum = density(0) + density(t);
  for (int i = 1; i < kParts; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(t * i / kParts);
  return 0.5 + sum * t / kParts / 3;
}

TEST(MeanInterval, HasTheQuantileOfEachNumberOfValues) {
  for (int count = 2; count <= kMaxFolds; ++count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(0.5 + 0.001 * (i % 2 == 0 ? 1 : -1) * (1 + i / 2));
    const MeanInterval result = mean_interval(values);
    double mean = 0, squares = 0;
    for (const double value : values) mean += value;
    mean /= count;
    for (const double value : values) squares += (value - mean) * (value - mean);
    const double deviation = std::sqrt(squares / (count - 1));
    EXPECT_NEAR(result.mean, mean, 1e-15);
    EXPECT_NEAR(result.deviation, deviation, 1e-15);
    const double t = (result.interval.high - mean) / deviation * std::sqrt(static_cast<double>(count));
    EXPECT_NEAR(result.interval.low, 2 * mean - result.interval.high, 1e-12);
    EXPECT_NEAR(student(t, count - 1), 0.975, 1e-9) << count;
  }
  for (const size_t count : {0, 1, 21}) {
    EXPECT_EQ(error_of([&] { mean_interval(std::vector<double>(count, 0.5)); }),
              str("mean_interval: expected 2 to 20 values, got ", count));
  }
}

TEST(CrossValidation, TellsItsFoldsAndWritesTheResult) {
  const fs::path images = make_images(5) / "train", run = testing::scratch_folder() / "run";
  std::vector<std::string> messages;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& message) {
    if (contains(message, "fold ") || contains(message, "final model") || contains(message, "-fold"))
      messages.push_back(message);
  };
  const Recipe recipe = fold_recipe(
      images, {"patience=1", "data.test=" + images.string(), "data.test_split=.", "batch_size=5", "validate_every=1"});
  const CrossValidationResult result = cross_validate(recipe, 3, {.folder = run, .threads = 1}, callbacks);
  const auto percent = [](double value) {
    std::ostringstream text;
    text << std::round(100 * value / 0.01) * 0.01;
    return text.str();
  };
  const std::string summary =
      str("3-fold cross-validation: mean top-1 ", percent(result.mean.mean), " % on 15 images (95 % interval ",
          percent(result.mean.interval.low), " to ", percent(result.mean.interval.high), " %)");
  std::vector<std::string> expected;
  for (int fold = 1; fold <= 3; ++fold) {
    expected.push_back(str("fold ", fold, " of 3"));
    expected.push_back(str("validating on fold ", fold, " of 3, 5 images"));
  }
  expected.push_back(summary);
  expected.emplace_back("final model, on all images");
  EXPECT_EQ(messages, expected);
  for (int fold = 1; fold <= 3; ++fold) {
    const fs::path folder = run / "folds" / std::to_string(fold);
    const Recipe of_fold = read_recipe(folder / "recipe.json");
    EXPECT_EQ(of_fold.data.folds, 3);
    EXPECT_EQ(of_fold.data.fold, fold);
    EXPECT_EQ(of_fold.data.test + of_fold.data.test_split, "");
    EXPECT_EQ(of_fold.validate_every, 2);
    EXPECT_EQ(of_fold.patience, 0) << "each fold has all epochs";
    const auto json = nlohmann::json::parse(read_text(folder / "summary.json"));
    EXPECT_EQ(json["epochs"], 2);
    EXPECT_EQ(json["training_images"], 10);
  }
  const Recipe final_recipe = read_recipe(run / "recipe.json");
  EXPECT_EQ(final_recipe.data.holdout, 0);
  EXPECT_EQ(final_recipe.data.folds, 0);
  EXPECT_EQ(final_recipe.data.test, images.string());
  EXPECT_EQ(final_recipe.patience, 0);
  EXPECT_EQ(final_recipe.validate_every, 1);
  EXPECT_TRUE(result.final.test.has_value());
  EXPECT_EQ(result.final.test->images, 15);
  EXPECT_TRUE(contains(read_text(run / "report.html"), "<td>cross-validation</td><td>" + summary + "</td>"));
  const nlohmann::ordered_json written{{"folds", 3},
                                       {"images", 15},
                                       {"top1", result.folds},
                                       {"mean", result.mean.mean},
                                       {"standard_deviation", result.mean.deviation},
                                       {"interval", {result.mean.interval.low, result.mean.interval.high}}};
  EXPECT_EQ(read_text(run / "cross_validation.json"), written.dump(2) + "\n");
}

TEST(CrossValidation, RefusesWhatDoesNotGoWithFolds) {
  const fs::path images = make_images(4), run = testing::scratch_folder() / "run";
  const auto refusal = [&](const Recipe& recipe, int64_t folds) {
    return error_of([&] { cross_validate(recipe, folds, {.folder = run, .threads = 1}); });
  };
  EXPECT_EQ(refusal(fold_recipe(images), 21), "folds: expected 2 to 20, got 21");
  EXPECT_EQ(refusal(fold_recipe(images), 1), "folds: expected 2 to 20, got 1");
  Recipe probe = fold_recipe(images);
  probe.objective = "probe";
  EXPECT_EQ(refusal(probe, 2),
            "folds: expected a recipe with objective \"classify\" (a probe cross-validates itself), got \"probe\"");
  const std::string own = "folds: expected no validation images besides the folds (unset data.val and data.holdout), ";
  EXPECT_EQ(refusal(fold_recipe(images, {"data.holdout=3"}), 2), own + "got a hold-out");
  EXPECT_EQ(refusal(fold_recipe(images, {"data.val=v"}), 2), own + "got v");
  EXPECT_EQ(refusal(fold_recipe(images, {"data.folds=3", "data.fold=2"}), 2),
            "folds: expected a recipe without a fold of its own (unset data.folds and data.fold), got fold 2 of 3");
}

}  // namespace
}  // namespace vitrail::train
