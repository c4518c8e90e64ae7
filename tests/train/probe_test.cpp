// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/support/golden.h"
#include "tests/support/models.h"
#include "tests/train/training_fixture.h"
#include "vitrail/analysis/logistic_regression.h"
#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/metrics/metrics.h"
#include "vitrail/image/transform.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/load.h"
#include "vitrail/nn/copied_params.h"

namespace vitrail::train {
namespace {

Recipe probe_recipe(const fs::path& images, const std::string& model = "timm_token",
                    const std::vector<std::string>& settings = {}) {
  const std::string init = testing::model_fixture(model).parent_path().string();
  return parse_recipe(R"({"objective": "probe", "model": {"init": ")" + init + R"("}, "batch_size": 7,
      "data": {"train": ")" +
                          images.string() + R"(", "test": ")" + images.string() + R"("}})",
                      "r.json", settings);
}

TrainingResult probe_to(const fs::path& folder, const Recipe& recipe, bool resume = false) {
  return train(recipe, {.folder = folder, .resume = resume, .threads = 2});
}

nlohmann::json summary_of(const fs::path& run) { return nlohmann::json::parse(read_text(run / "summary.json")); }

// The head's inputs for the training images, computed by the eager model, and the labels.
struct Samples {
  Tensor features;
  std::vector<int64_t> labels;
};
Samples training_samples(const fs::path& images, const models::OpenedModel& opened) {
  const models::VisionTransformer model = models::build_model(opened);
  models::VisionTransformerConfig config = opened.config.vit;
  config.num_classes = 0;
  nn::CopiedParams params(model);
  const models::VisionTransformer headless(config, ParamSource(params));
  const image::EvalTransform transform = infer::transform_of(opened.config.preprocessing, "model");
  const auto dataset = data::open_dataset(images, {.split = "train"});
  Samples samples;
  std::vector<float> values;
  for (int64_t i = 0; i < dataset->size(); ++i) {
    const Tensor image = image::apply(dataset->image(i), transform);
    const Tensor row = headless.forward(image.unsqueeze(0)).contiguous();
    values.insert(values.end(), row.data<float>(), row.data<float>() + row.numel());
    samples.labels.push_back(dataset->label(i));
  }
  samples.features =
      Tensor::from<float>({dataset->size(), static_cast<int64_t>(values.size()) / dataset->size()}, values);
  return samples;
}

TEST(Probe, TheHeadIsTheLogisticRegressionOnTheFeatures) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  probe_to(run, probe_recipe(images));
  const models::OpenedModel opened = models::open_model(run);
  EXPECT_EQ(opened.config.labels, (std::vector<std::string>{"blue", "green", "red"}));
  const Samples samples = training_samples(images, opened);
  const double c = summary_of(run)["probe"]["c"];
  const auto expected = analysis::fit_logistic_regression(samples.features, samples.labels, 3, {.c = c});
  const models::VisionTransformer model = models::build_model(opened);
  // Both regressions take the same steps, on features that differ by their rounding errors.
  EXPECT_TRUE(testing::close(model.parameter("head.weight"), expected.weight, 1e-6));
  EXPECT_TRUE(testing::close(model.parameter("head.bias"), expected.bias, 1e-6));
}

TEST(Probe, LearnsAnEasyDatasetAndReportsIt) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  std::vector<std::string> messages;
  TrainerCallbacks callbacks;
  callbacks.message = [&](const std::string& line) { messages.push_back(line); };
  const TrainingResult result = train(probe_recipe(images), {.folder = run, .threads = 1}, callbacks);
  EXPECT_FALSE(result.stopped);
  EXPECT_GT(result.test->scores[0].value, 0.8);
  EXPECT_FALSE(result.best) << "nothing is held out";
  EXPECT_EQ(result.best_epoch, 0) << "a probe has no epochs to choose from";
  ASSERT_TRUE(result.cross_validated);
  EXPECT_GT(result.cross_validated->value, 0.8);
  EXPECT_EQ(result.cross_validated->images, 60);
  for (const char* file : {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/model.safetensors"})
    EXPECT_TRUE(fs::exists(run / file)) << file;
  const nlohmann::json summary = summary_of(run);
  EXPECT_EQ(summary["epochs"], result.epoch) << "the features of each image are computed once";
  EXPECT_EQ(summary["seconds"], result.seconds);
  EXPECT_EQ(summary["test"]["images"], 12);
  EXPECT_EQ(summary["test"]["top1"], result.test->scores[0].value);
  EXPECT_EQ(summary["probe"]["folds"], 5);
  EXPECT_EQ(summary["probe"]["cross_validated_top1"], result.cross_validated->value);
  EXPECT_EQ(summary["probe"]["cross_validated_images"], 60);
  EXPECT_EQ(summary["probe"]["cross_validated_top1_interval"][0],
            data::wilson_interval(result.cross_validated->value, 60).low);
  EXPECT_FALSE(summary.contains("held_out"));
  EXPECT_EQ(summary["test"]["top5_interval"][0], data::wilson_interval(result.test->scores[1].value, 12).low);
  const std::vector<std::string> rows = deterministic_columns(run / "metrics.csv");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_TRUE(rows[1].starts_with("train,") && rows[2].starts_with("val,") && rows[3].starts_with("test,"));
  EXPECT_TRUE(contains(read_text(run / "report.html"), "top-1 in 5-fold cross-validation"));
  EXPECT_TRUE(std::any_of(messages.begin(), messages.end(),
                          [](const std::string& line) { return contains(line, "5-fold cross-validation"); }));
}

// Test images of two classes have each other's names: a third is right, and all are among the best five of three.
TEST(Probe, BothAccuraciesAreThoseOfTheTestImages) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  fs::rename(images / "test/red", images / "test/other");
  fs::rename(images / "test/green", images / "test/red");
  fs::rename(images / "test/other", images / "test/green");
  const TrainingResult result = probe_to(run, probe_recipe(images));
  EXPECT_LT(result.test->scores[0].value, 0.6);
  EXPECT_EQ(result.test->scores[1].value, 1);
  const nlohmann::json summary = summary_of(run);
  EXPECT_EQ(summary["test"]["top1"], result.test->scores[0].value);
  EXPECT_EQ(summary["test"]["top5"], 1);
}

TEST(Probe, AModelWithADistillationTokenClassifiesAsTheRegression) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const TrainingResult result = probe_to(run, probe_recipe(images, "timm_distilled"));
  EXPECT_GT(result.test->scores[0].value, 0.8);
  const models::OpenedModel opened = models::open_model(run);
  const Samples samples = training_samples(images, opened);
  const models::VisionTransformer model = models::build_model(opened);
  const auto dataset = data::open_dataset(images, {.split = "train"});
  const Tensor image = image::apply(dataset->image(0), infer::transform_of(opened.config.preprocessing, "model"));
  const double c = summary_of(run)["probe"]["c"];
  const auto regression = analysis::fit_logistic_regression(samples.features, samples.labels, 3, {.c = c});
  const Tensor expected = analysis::logits(regression, samples.features.narrow(0, 0, 1));
  // Logits of up to 16 from two regressions, whose features differ by the rounding of a batched forward pass.
  EXPECT_TRUE(testing::close(model.forward(image.unsqueeze(0)), expected, 1e-3));
}

TEST(Probe, ValidationImagesGiveTheAccuracyIfTheRecipeHasSome) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  const TrainingResult result = probe_to(run, probe_recipe(images, "timm_token", {"data.holdout=15"}));
  const nlohmann::json summary = summary_of(run);
  EXPECT_EQ(summary["training_images"], 45);
  EXPECT_EQ(summary["held_out"]["images"], 15);
  EXPECT_EQ(summary["held_out"]["top1"], result.best.value().value);
  EXPECT_FALSE(summary["held_out"].contains("epoch")) << "no epoch was chosen";
  EXPECT_FALSE(contains(read_text(run / "model/README.md"), "These images chose the weights"));
}

TEST(Probe, AFinishedProbeIsComputedAgainOnlyWithResume) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  probe_to(run, probe_recipe(images));
  const std::string model = read_text(run / "model/model.safetensors");
  const std::string message = error_of([&] { probe_to(run, probe_recipe(images)); });
  EXPECT_TRUE(contains(message, "--resume")) << message;
  probe_to(run, probe_recipe(images), true);
  EXPECT_EQ(read_text(run / "model/model.safetensors"), model);
  EXPECT_EQ(deterministic_columns(run / "metrics.csv").size(), 4u);
}

TEST(Probe, SeveralProcessesAreAnError) {
  const Recipe recipe = probe_recipe(make_images());
  const fs::path run = testing::scratch_folder() / "run";
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    const std::string message =
        error_of([&] { train(recipe, {.folder = run, .threads = 1, .communicator = communicator}); });
    EXPECT_TRUE(contains(message, "one process for \"probe\"")) << message;
  });
}

TEST(Probe, AStopLeavesNothingBehind) {
  const fs::path run = testing::scratch_folder() / "run";
  TrainerCallbacks callbacks;
  callbacks.stop = [] { return true; };
  EXPECT_TRUE(train(probe_recipe(make_images()), {.folder = run, .threads = 1}, callbacks).stopped);
  EXPECT_FALSE(fs::exists(run));
}

TEST(Probe, AClassWithOneImageHasNoCrossValidation) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  for (int i = 1; i < 20; ++i) fs::remove(images / "train/red" / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"));
  Warnings warnings;
  const TrainingResult result = probe_to(run, probe_recipe(images));
  EXPECT_TRUE(warnings.any("a class has a single image"));
  EXPECT_FALSE(result.best);
  EXPECT_EQ(summary_of(run)["probe"]["folds"], 0);
  EXPECT_FALSE(contains(read_text(run / "report.html"), "<svg"));
}

TEST(Probe, CrossValidationOnRepeatedImagesIsReported) {
  const fs::path images = make_images(), run = testing::scratch_folder() / "run";
  fs::copy_file(images / "train/red/01.png", images / "train/red/copy.png");
  const Warnings warnings;
  probe_to(run, probe_recipe(images));
  EXPECT_TRUE(warnings.any("1 of 61 training images repeat others")) << warnings.messages.size();
}

TEST(Probe, AFolderOfAnotherRunIsAnErrorThatSaysSo) {
  const fs::path images = make_images(6), run = testing::scratch_folder() / "run";
  const std::string expected =
      run.string() + ": expected a folder without a run, or --resume to compute its probe again, got a folder with ";
  fs::create_directories(run / "checkpoints");
  write_file(run / "summary.json", "{}");
  EXPECT_EQ(error_of([&] { probe_to(run, probe_recipe(images)); }), expected + "a finished run");
  write_file(run / "checkpoints/last.safetensors", "x");
  for (const bool resume : {false, true}) {
    EXPECT_EQ(error_of([&] { probe_to(run, probe_recipe(images), resume); }), expected + "the checkpoints of a run");
  }
  EXPECT_EQ(read_text(run / "summary.json"), "{}");
}

// Training images that cannot be read are skipped and counted; an error names them else.
TEST(Probe, UnreadableImagesAreCounted) {
  const fs::path images = make_images(6), runs = testing::scratch_folder();
  write_file(images / "train/red/02.png", "none");
  write_file(images / "test/blue/01.png", "none");
  const Warnings warnings;
  const TrainingResult result = probe_to(runs / "a", probe_recipe(images, "timm_token", {"data.unreadable=skip"}));
  EXPECT_EQ(result.skipped_images, 1);
  EXPECT_EQ(result.test->images, 11);
  EXPECT_EQ(result.cross_validated->images, 17);
  EXPECT_TRUE(warnings.any("train/red/02.png: cannot be read and is skipped"));
  EXPECT_TRUE(warnings.any(": 1 image cannot be read and is left out of the accuracies"));
  const nlohmann::json summary = summary_of(runs / "a");
  EXPECT_EQ(summary["skipped_images"], 1);
  EXPECT_EQ(summary["training_images"], 17) << "those that were read";
  const std::string page = read_text(runs / "a/report.html"), card = read_text(runs / "a/model/README.md");
  EXPECT_TRUE(contains(page, "<b>17</b><span>training images</span>"));
  EXPECT_TRUE(contains(page, "<tr><td>red</td><td>5</td>")) << "of six";
  EXPECT_TRUE(contains(card, " on 17 images of 3 classes"));
  const std::string message = error_of([&] { probe_to(runs / "b", probe_recipe(images)); });
  EXPECT_TRUE(contains(message, "train/red/02.png")) << message;
  EXPECT_FALSE(fs::exists(runs / "b"));
  for (const auto& entry : fs::directory_iterator(images / "train/green")) write_file(entry.path(), "none");
  EXPECT_TRUE(
      contains(error_of([&] { probe_to(runs / "c", probe_recipe(images, "timm_token", {"data.unreadable=skip"})); }),
               "images that can be read in every class, got none of the 6 training images of green"));
}

}  // namespace
}  // namespace vitrail::train
