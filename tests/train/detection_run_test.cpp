// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/golden.h"
#include "tests/train/detection_fixture.h"
#include "tests/train/metrics_comparison.h"
#include "tests/train/training_runs.h"
#include "vitrail/base/text.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/rf_detr/box_operations.h"
#include "vitrail/train/objectives/detection/detection_model_internal.h"
#include "vitrail/train/recipe/default_recipe.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

TEST(DetectionRun, WritesAllFilesOfTheRunFolder) {
  const fs::path boxes = make_boxes(), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, detection_recipe(boxes, {"data.test=" + boxes.string(), "data.test_split=val"}));
  EXPECT_EQ(result.step, 6);  // 12 images in batches of 4
  ASSERT_TRUE(result.test.has_value());
  EXPECT_EQ(result.usage, "detect -m {} IMAGE");
  for (const char* file : {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/model.safetensors",
                           "model/config.json", "last/model.safetensors", "checkpoints/last.safetensors"}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  EXPECT_TRUE(contains(read_text(run / "metrics.csv"), "ap50,ap"));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["test"]["ap50"], result.test->scores[0].value);
  const std::string page = read_text(run / "report.html"), card = read_text(run / "model/README.md");
  EXPECT_TRUE(contains(page, "<span>AP50 of lamp</span>"));
  EXPECT_TRUE(contains(page, "<h2>Lowest F1: the labels, and the boxes that are found</h2>"));
  EXPECT_TRUE(contains(card, "12 images with boxes of `" + boxes.string() + "`, for 2 classes: lamp, hole"));
}

TEST(DetectionRun, LearnsToFindObjects) {
  const fs::path boxes = make_boxes(64, 8), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(
      run, detection_recipe(boxes, {"epochs=40", "optimizer.lr=2e-3", "ema=null", "validate_every=40",
                                    "augment.random_resized_crop=null", "detect.groups=3", "detect.width=32"}));
  EXPECT_GT(result.best->value, 0.7);
  // The saved model finds the same.
  const models::RfDetr model = models::load_rf_detr(models::open_rf_detr(models::ModelFiles(run / "model")));
  EXPECT_EQ(model.config().labels, (std::vector<std::string>{"lamp", "hole"}));
  const image::EvalTransform transform = infer::transform_of(model.config().preprocessing, "model");
  const image::Image image = image::read_image(boxes / "images/val/00.png");
  const models::RfDetrOutput output = model.forward(image::apply(image, transform).unsqueeze(0));
  const auto best = models::best_classes(output.logits.squeeze(0).contiguous(), 1).front();
  const float* const box = output.boxes.contiguous().data<float>() + 4 * best.query;
  EXPECT_NEAR(box[2], 0.25, 0.1);
  EXPECT_NEAR(box[3], 0.375, 0.15);
}

TEST(DetectionRun, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const fs::path boxes = make_boxes(), scratch = testing::scratch_folder();
  const Recipe recipe = detection_recipe(boxes, {"accumulate=2", "detect.mosaic=0.5"});
  train_to(scratch / "whole", recipe);
  EXPECT_TRUE(train_to(scratch / "parts", recipe, false, 1).stopped);  // within the first epoch
  EXPECT_TRUE(train_to(scratch / "parts", recipe, true, 3).stopped);
  EXPECT_FALSE(train_to(scratch / "parts", recipe, true).stopped);
  expect_same_runs(scratch / "whole", scratch / "parts");
}

// The rows of a class keep their values, whatever its new index; the others are new.
TEST(DetectionRun, ContinuesFromADetectorWithOtherClasses) {
  const fs::path boxes = make_boxes(4, 1), run = testing::scratch_folder() / "run";
  train_to(run, detection_recipe(boxes, {"epochs=1", "ema=null"}));
  const models::RfDetr before = models::load_rf_detr(models::open_rf_detr(models::ModelFiles(run / "model")));
  Recipe recipe = detection_recipe(boxes, {"model=null", "model.init=" + (run / "model").string(), "detect.size=96"});
  const PreparedDetector after = prepare_detector(recipe, {"other", "lamp"});
  EXPECT_EQ(after.model.config().side(), 96);
  EXPECT_EQ(after.model.config().groups, 2);
  const Tensor old = before.parameter("class_embed.weight").contiguous(),
               now = after.model.parameter("class_embed.weight").contiguous();
  EXPECT_TRUE(testing::close(now.select(0, 1), old.select(0, 0), 0));
  EXPECT_FALSE(testing::close(now.select(0, 0), old.select(0, 1), 1e-3));
  EXPECT_TRUE(testing::close(after.model.parameter("bbox_embed.layers.0.weight"),
                             before.parameter("bbox_embed.layers.0.weight"), 0));
  EXPECT_EQ(after.notes, (std::vector<std::string>{"classes: 1 of 2 have the rows of the same name"}));
}

TEST(DetectionRun, FineTunesAFolderOfTransformers) {
  const fs::path boxes = make_boxes(4, 1), run = testing::scratch_folder() / "run",
                 source = testing::fixture("rf_detr/windows/config.json").parent_path();
  train_to(run, detection_recipe(
                    boxes, {"model=null", "model.init=" + source.string(), "detect.size=0", "epochs=3", "ema=null"}));
  const models::RfDetr before = models::load_rf_detr(models::open_rf_detr(models::ModelFiles(source))),
                       after = models::load_rf_detr(models::open_rf_detr(models::ModelFiles(run / "model")));
  EXPECT_EQ(after.config().labels, (std::vector<std::string>{"lamp", "hole"}));
  EXPECT_EQ(after.config().side(), before.config().side());
  // A step of training away from the source's weights, not new ones.
  const std::string layer = "backbone.blocks.0.mlp.fc1.weight";
  EXPECT_TRUE(testing::close(after.parameter(layer), before.parameter(layer), 0.01));
  EXPECT_FALSE(testing::close(after.parameter(layer), before.parameter(layer), 0));
}

TEST(DetectionRun, AFrozenBackboneKeepsItsWeights) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe = detection_recipe(make_boxes(4, 1), {"detect.train_backbone=false", "ema=null"});
  train_to(run, recipe);
  const PreparedDetector initial = prepare_detector(recipe, {"lamp", "hole"});
  for (const nn::NamedTensor& tensor : load_checkpoint(run / "checkpoints/last.safetensors").model) {
    if (!tensor.name.starts_with("backbone.")) continue;
    EXPECT_TRUE(testing::close(tensor.tensor, initial.model.parameter(tensor.name), 0)) << tensor.name;
  }
}

TEST(DetectionRun, RefusesModelsAndSettingsThatDoNotFit) {
  const fs::path boxes = make_boxes(2, 1), run = testing::scratch_folder() / "run";
  EXPECT_ERROR(error_of([&] { train_to(run, detection_recipe(boxes, {"detect.size=72"})); }), "detect.size", "72");
  EXPECT_ERROR(error_of([&] { train_to(run, detection_recipe(boxes, {"detect.queries=100"})); }), "detect.queries",
               "100");
  EXPECT_ERROR(error_of([&] { train_to(run, detection_recipe(boxes, {"model.reg_tokens=1"})); }), "model",
               "register tokens");
  for (const char* setting : {"augment.policy=trivialaugment", "loss.label_smoothing=0.1", "detect.width=24"})
    EXPECT_TRUE(contains(error_of([&] { detection_recipe(boxes, {setting}); }), "detect")) << setting;
}

TEST(DetectionRecipe, IsChosenForADatasetOfBoxes) {
  const fs::path boxes = make_boxes(20, 4);
  EXPECT_EQ(dataset_objective(boxes.string()), "detect");
  const DefaultRecipe chosen =
      default_recipe({.data = boxes.string(), .model = testing::fixture("models/timm_token").string()});
  EXPECT_EQ(chosen.recipe.objective, "detect");
  EXPECT_EQ(chosen.recipe.data.val, boxes.string());
  EXPECT_EQ(chosen.training_images, 20);
  EXPECT_EQ(chosen.recipe.epochs, 3 * 22);  // three times 40 / 20^0.2
  EXPECT_TRUE(chosen.recipe.ema.has_value());
  EXPECT_EQ(write_recipe(parse_recipe(write_recipe(chosen.recipe), "r.json")), write_recipe(chosen.recipe));
  EXPECT_ERROR(error_of([&] { default_recipe({.data = boxes.string(), .cross_validated = true}); }), "--folds",
               "a dataset of boxes");
}

// The model has patches of 8 pixels.
TEST(DetectionRecipe, HasAtMostAsManyQueriesAsPatches) {
  const fs::path boxes = make_boxes(2, 1);
  const auto queries = [&](const std::vector<std::string>& settings, const std::string& reason) {
    const DefaultRecipe chosen = default_recipe(
        {.data = boxes.string(), .model = testing::fixture("models/timm_token").string(), .settings = settings});
    EXPECT_TRUE(contains(join(chosen.reasons, "\n"), reason)) << join(chosen.reasons, "\n");
    return detection_of(chosen.recipe).queries;
  };
  EXPECT_EQ(queries({}, "new: 100 queries in"), 100);
  EXPECT_EQ(queries({"detect.size=64"}, "new: 64 queries, one for each patch of the input, in"), 64);
  EXPECT_EQ(queries({"detect.size=64", "detect.queries=80"}, "new: 80 queries in"), 80) << "refused by the training";
}

}  // namespace
}  // namespace vitrail::train
