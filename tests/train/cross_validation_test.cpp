// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/cross_validation.h"

#include <nlohmann/json.hpp>
#include <set>

#include "tests/train/training_fixture.h"
#include "vitrail/train/run_data_internal.h"

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
  EXPECT_FALSE(result.final.best_top1.has_value());  // nothing was held out
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

}  // namespace
}  // namespace vitrail::train
