// SPDX-License-Identifier: Apache-2.0
// What simpler methods reach on the validation images, beside what training reaches.
#include <nlohmann/json.hpp>

#include "tests/support/messages.h"
#include "tests/support/models.h"
#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/classification/head_features_internal.h"
#include "vitrail/train/report/result_json.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

// Class 0 is at 1 on the axis, class 1 at −1.  The label of the last validation image is wrong.
TEST(Baselines, AreAccuraciesOfClassifiersOfTheTrainingImages) {
  std::vector<float> rows;
  std::vector<int64_t> labels;
  for (int i = 0; i < 20; ++i) {
    rows.insert(rows.end(), {i < 10 ? 1.0f : -1.0f, 0.01f * static_cast<float>(i % 10)});
    labels.push_back(i < 10 ? 0 : 1);
  }
  const HeadFeatures training{Tensor::from<float>({20, 2}, rows), labels};
  const HeadFeatures validation{Tensor::from<float>({4, 2}, {1, 0, 1, 0.1f, -1, 0, -1, 0.1f}), {0, 0, 1, 0}};
  const std::vector<Score> scores = baselines_of(training, validation, 2, probe_of(training, 2));
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_EQ(scores[0].name, "knn");
  EXPECT_EQ(scores[1].name, "probe");
  for (const Score& score : scores) {
    EXPECT_EQ(score.value, 0.75) << score.name;
    EXPECT_EQ(score.images, 4);
  }
}

// The second test image is at 45 degrees to both training images.
TEST(NearDuplicates, OfTrainingImagesAreCountedAndTheNearestIsNamed) {
  const fs::path images = make_images(4);
  const Subset train{data::open_dataset(images, {.split = "train"}), {}, "train"},
      test{data::open_dataset(images, {.split = "test"}), {}, "test"};
  const HeadFeatures training{Tensor::from<float>({2, 2}, {1, 0, 0, 1}), {0, 1}, {5, 2}};
  const auto warnings_of = [&](const std::vector<float>& rows) {
    const testing::Warnings warnings;
    warn_of_near_duplicates(training, train, {Tensor::from<float>({2, 2}, rows), {0, 1}, {1, 0}}, test, "test");
    return warnings.messages;
  };
  EXPECT_TRUE(warnings_of({2, 1, 1, 1}).empty()) << "cosine similarities of 0.89 and 0.71";
  EXPECT_TRUE(warnings_of({1, 0, 0, 1}).empty()) << "all of them: the features may tell nothing apart";
  const std::vector<std::string> found = warnings_of({1, 1, 0.3f, 2});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].starts_with("1 of 2 test images are near-identical to training images, as " +
                                   test.dataset->path(0) + " to " + train.dataset->path(2)))
      << found[0];
}

// A regression of 1,000 classes on these features would take minutes.
TEST(Baselines, ALongRegressionIsLeftOut) {
  const HeadFeatures many{Tensor::zeros({200, 51}), std::vector<int64_t>(200)};
  const std::vector<Score> scores = baselines_of(many, many, 1000, probe_of(many, 1000));
  ASSERT_EQ(scores.size(), 1u);
  EXPECT_EQ(scores[0].name, "knn");
}

Recipe finetune_recipe(const fs::path& images, const std::vector<std::string>& settings = {}) {
  const std::string init = testing::model_fixture("timm_token").parent_path().string();
  return parse_recipe(R"({"model": {"init": ")" + init + R"("}, "batch_size": 8, "epochs": 1,
      "data": {"train": ")" +
                          images.string() + R"(", "holdout": 12}})",
                      "r.json", settings);
}

TEST(Baselines, ARunKeepsThemInItsResultAndItsSummary) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  std::vector<std::string> messages;
  const TrainerCallbacks callbacks{.message = [&](const std::string& line) { messages.push_back(line); }};
  const TrainingResult result = train(finetune_recipe(images), {.folder = run, .threads = 2}, callbacks);
  ASSERT_EQ(result.baselines.size(), 2u);
  for (const Score& score : result.baselines) EXPECT_EQ(score.images, 12);
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  const auto json = nlohmann::json::parse(result_json(result));
  EXPECT_EQ(summary["baselines"], json["baselines"]);
  EXPECT_EQ(json["baselines"]["probe"], result.baselines[1].value);
  EXPECT_TRUE(contains(read_text(run / "report.html"), "linear probe of the features before training"));
  int lines = 0;
  for (const std::string& line : messages) lines += line.starts_with("before training, ") ? 1 : 0;
  EXPECT_EQ(lines, 2);
  // A run that goes on does not compute them again, from weights that are trained.
  messages.clear();
  const TrainingResult more = train(finetune_recipe(images, {"epochs=2"}),
                                    {.folder = run, .resume = true, .allow_changes = true, .threads = 2}, callbacks);
  ASSERT_EQ(more.baselines.size(), 2u);
  EXPECT_EQ(more.baselines[1].value, result.baselines[1].value);
  for (const std::string& line : messages) EXPECT_FALSE(line.starts_with("before training, ")) << line;
}

TEST(Baselines, AStopEndsTheirRegression) {
  const fs::path run = testing::scratch_folder() / "run";
  bool searching = false;
  const TrainerCallbacks callbacks{
      .progress = [&](const Progress& p) { searching = p.phase == Progress::Phase::search; },
      .stop = [&] { return searching; }};
  const TrainingResult result = train(finetune_recipe(make_images()), {.folder = run, .threads = 2}, callbacks);
  EXPECT_TRUE(result.stopped);
  EXPECT_EQ(result.step, 0);
}

TEST(Baselines, ANewModelAndARunWithoutValidationHaveNone) {
  const fs::path images = make_images();
  const fs::path first = testing::scratch_folder() / "run", second = testing::scratch_folder() / "run";
  const Recipe scratch = parse_recipe(tiny_recipe(images), "r.json", {"epochs=1"});
  EXPECT_TRUE(train(scratch, {.folder = first, .threads = 2}).baselines.empty());
  const Recipe all = finetune_recipe(images, {"data.holdout=0"});
  EXPECT_TRUE(train(all, {.folder = second, .threads = 2}).baselines.empty());
}

}  // namespace
}  // namespace vitrail::train
