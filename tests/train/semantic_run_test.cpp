// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>

#include "tests/dist/thread_communicator.h"
#include "tests/support/golden.h"
#include "tests/train/metrics_comparison.h"
#include "tests/train/semantic_fixture.h"
#include "tests/train/training_runs.h"
#include "vitrail/analysis/label_map.h"
#include "vitrail/image/decode.h"
#include "vitrail/infer/preprocess.h"
#include "vitrail/models/semantic/semantic_segmenter.h"
#include "vitrail/train/objectives/semantic/semantic_model_internal.h"
#include "vitrail/train/run/checkpoint.h"

namespace vitrail::train {
namespace {

TEST(SemanticRun, WritesAllFilesOfTheRunFolder) {
  const fs::path maps = make_maps(), run = testing::scratch_folder() / "run";
  const TrainingResult result =
      train_to(run, semantic_recipe(maps, {"data.test=" + maps.string(), "data.test_split=val"}));
  EXPECT_EQ(result.epoch, 2);
  EXPECT_EQ(result.step, 6);  // 12 images in batches of 4
  ASSERT_TRUE(result.test.has_value());
  EXPECT_EQ(result.validation_images, 4);
  EXPECT_EQ(result.usage, "segment -m {} IMAGE");
  for (const char* file : {"recipe.json", "metrics.csv", "report.html", "summary.json", "model/model.safetensors",
                           "model/config.json", "last/model.safetensors", "checkpoints/last.safetensors"}) {
    EXPECT_TRUE(fs::exists(run / file)) << file;
  }
  EXPECT_TRUE(contains(read_text(run / "metrics.csv"), "miou,pixel_accuracy"));
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["test"]["miou"], result.test->scores[0].value);
  EXPECT_EQ(summary["test"]["pixel_accuracy"], result.test->scores[1].value);
  EXPECT_EQ(summary["held_out"]["miou"], result.best->value);
  EXPECT_GT(summary["held_out"]["loss"], 0);
  double sum = 0;
  for (const char* name : {"wall", "lamp", "hole"}) sum += summary["class_iou"][name].get<double>();
  EXPECT_NEAR(sum / 3, result.test->scores[0].value, 1e-12);
  const std::string page = read_text(run / "report.html"), card = read_text(run / "model/README.md");
  EXPECT_TRUE(contains(page, "<span>IoU of lamp</span>"));
  EXPECT_TRUE(contains(page, "<h3>Mean IoU</h3>"));
  EXPECT_TRUE(contains(card, "12 images with label maps of `" + maps.string() + "`, for 3 classes: wall, lamp, hole"));
  EXPECT_TRUE(contains(card, "- mean IoU on the test images, 4 images: "));
  const size_t overlays = page.find("<h2>Lowest mean IoU: the map, and the prediction</h2>");
  ASSERT_NE(overlays, page.npos);
  int images = 0;
  for (size_t at = overlays; (at = page.find("<img", at + 1)) != page.npos;) ++images;
  EXPECT_EQ(images, 8) << "four images, with the map and with the prediction";
}

// The settings of a head.
std::vector<std::string> settings_of_head(const std::string& head, std::vector<std::string> others) {
  others.push_back("semantic.head=" + head);
  if (head == "dpt") others.emplace_back("model.depth=4");
  return others;
}

class HeadRun : public ::testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Heads, HeadRun, ::testing::Values("linear", "dpt"),
                         [](const auto& info) { return std::string(info.param); });

// An epoch's evaluation is that of the saved model.
TEST_P(HeadRun, TheSavedModelGivesTheResultsOfTheRun) {
  const fs::path maps = make_maps(), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(
      run, semantic_recipe(maps, settings_of_head(GetParam(), {"ema=null", "optimizer.lr=0.004", "epochs=10"})));
  const models::SemanticSegmenter model =
      models::load_semantic_segmenter(models::open_semantic_segmenter(run / "model"));
  EXPECT_EQ(model.config().labels, (std::vector<std::string>{"wall", "lamp", "hole"}));
  const image::EvalTransform transform = infer::transform_of(model.config().preprocessing, "model");
  analysis::LabelMapMetrics metrics(3);
  for (int i = 0; i < 4; ++i) {
    const std::string name = "0" + std::to_string(i) + ".png";
    const image::Image image = image::read_image(maps / "images/val" / name);
    const image::Image map = image::read_image(maps / "labels/val" / name, {.mode = image::ColorMode::grey});
    const Tensor logits = model.forward(image::apply(image, transform).unsqueeze(0)).squeeze(0);
    metrics.add(std::vector<int32_t>(map.pixels.begin(), map.pixels.end()),
                analysis::argmax_at_size(logits, image.height, image.width), name);
  }
  EXPECT_NEAR(metrics.mean_iou(), result.best->value, 1e-3);  // a batch norm in its layer rounds otherwise
  EXPECT_GT(metrics.mean_iou(), 0.3);
}

TEST_P(HeadRun, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const fs::path maps = make_maps();
  for (const char* backbone : {"semantic.train_backbone=true", "semantic.train_backbone=false"}) {
    const fs::path scratch = testing::scratch_folder();
    const Recipe recipe = semantic_recipe(maps, settings_of_head(GetParam(), {backbone, "accumulate=2"}));
    train_to(scratch / "whole", recipe);
    EXPECT_TRUE(train_to(scratch / "parts", recipe, false, 13).stopped);  // within the first epoch
    EXPECT_TRUE(train_to(scratch / "parts", recipe, true, 3).stopped);
    EXPECT_FALSE(train_to(scratch / "parts", recipe, true).stopped);
    expect_same_runs(scratch / "whole", scratch / "parts");
  }
}

// The first loss is that of the same weights: some dozen roundings to 8 bits.
TEST(SemanticRun, TrainsInBf16) {
  const fs::path maps = make_maps();
  double losses[2];
  for (const char* precision : {"fp32", "bf16"}) {
    const fs::path run = testing::scratch_folder() / precision;
    EXPECT_EQ(train_to(run, semantic_recipe(maps, {std::string("precision=") + precision})).step, 6);
    losses[precision[0] == 'b'] = train_column(run, Column::loss).front();
  }
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[1], 0.05 * losses[0]);
}

// All patches have a label, whatever the model's own rate says.
TEST(SemanticRun, DropsNoPatches) {
  const Recipe recipe = semantic_recipe(make_maps(4, 1), {"model.patch_drop_rate=0.5", "epochs=1"});
  EXPECT_EQ(train_to(testing::scratch_folder() / "run", recipe).step, 1);
}

TEST_P(HeadRun, AFrozenBackboneKeepsItsWeights) {
  const fs::path run = testing::scratch_folder() / "run";
  const Recipe recipe =
      semantic_recipe(make_maps(), settings_of_head(GetParam(), {"semantic.train_backbone=false", "ema=null"}));
  train_to(run, recipe);
  const PreparedSegmenter initial = prepare_segmenter(recipe, {"wall", "lamp", "hole"});
  const CheckpointState state = load_checkpoint(run / "checkpoints/last.safetensors");
  for (const nn::NamedTensor& tensor : state.model) {
    const bool changed = !testing::close(tensor.tensor, initial.model.parameter(tensor.name), 0);
    EXPECT_EQ(changed, !tensor.name.starts_with("backbone.")) << tensor.name;
  }
}

// The statistics are those of the features of the training images.
TEST(SemanticRun, NormalisesTheFeaturesOfTheTrainingImages) {
  const fs::path maps = make_maps(3, 1), run = testing::scratch_folder() / "run";
  const Recipe recipe = semantic_recipe(maps, {"semantic.train_backbone=false", "ema=null", "epochs=1"});
  train_to(run, recipe);
  const CheckpointState state = load_checkpoint(run / "checkpoints/last.safetensors");
  const auto of = [&](const char* name) {
    return std::ranges::find(state.model, std::string("head.bn.") + name, &nn::NamedTensor::name)->tensor;
  };
  const PreparedSegmenter initial = prepare_segmenter(recipe, {"wall", "lamp", "hole"});
  image::EvalTransform transform{
      .size = {32, 32}, .crop_pct = 1, .crop_mode = image::CropMode::squash, .mean = {0.5}, .std = {0.5}};
  double sum = 0, squares = 0;
  for (const char* name : {"00.png", "01.png", "02.png"}) {
    const Tensor input = image::apply(image::read_image(maps / "images/train" / name), transform).unsqueeze(0);
    const Tensor features = initial.model.features(input).contiguous();
    for (int64_t i = 0; i < 16; ++i) {
      const double value = features.data<float>()[i * 32 + 7];
      sum += value, squares += value * value;
    }
  }
  const double mean = sum / 48;
  EXPECT_NEAR(of("running_mean").contiguous().data<float>()[7], mean, 1e-5);
  EXPECT_NEAR(of("running_var").contiguous().data<float>()[7], squares / 48 - mean * mean, 1e-5);
}

// All of one class has a mean IoU of at most 1/3 of the share of that class.
TEST_P(HeadRun, LearnsTheClassesOfPixels) {
  const fs::path run = testing::scratch_folder() / "run";
  const std::vector<std::string> settings{"epochs=12", "optimizer.lr=0.004", "ema=null", "validate_every=12"};
  const TrainingResult result = train_to(run, semantic_recipe(make_maps(32), settings_of_head(GetParam(), settings)));
  EXPECT_GT(result.best->value, 0.6);
}

TEST(SemanticRun, TrainsAgainOnAllImages) {
  const fs::path maps = make_maps(12, 1), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(
      run, semantic_recipe(maps, {"data.val=\"\"", "data.holdout=4", "data.retrain=true", "epochs=2", "ema=null"}));
  ASSERT_TRUE(result.retrained.has_value());
  EXPECT_EQ(result.retrained->images, 12);
  EXPECT_EQ(models::open_semantic_segmenter(run / "model").config.num_classes(), 3);
}

TEST(SemanticRun, SkipsAndCountsUnreadableFilesIfTheRecipeSaysSo) {
  const fs::path maps = make_maps(), scratch = testing::scratch_folder();
  write_file(maps / "images/train/03.png", "no image");
  const std::string message = error_of([&] { train_to(scratch / "a", semantic_recipe(maps)); });
  EXPECT_TRUE(contains(message, "03.png")) << message;
  const Warnings warnings;
  const TrainingResult result = train_to(scratch / "b", semantic_recipe(maps, {"data.unreadable=skip"}));
  EXPECT_EQ(result.skipped_images, 1);
  EXPECT_TRUE(warnings.any("03.png"));
}

TEST(SemanticRun, RefusesSettingsThatMapsHaveNoUseFor) {
  const fs::path maps = make_maps(2, 1);
  for (const auto& [setting, expected] : {std::pair{"augment.mixup=0.2", "augment: expected only random_resized_crop"},
                                          {"augment.flip=alternate", "augment.flip"},
                                          {"loss.name=bce", "loss: "},
                                          {"data.crop_pct=0.9", "data.crop_pct"},
                                          {"data.balance=true", "neither balance nor folds"},
                                          {"token_drop={}", "token_drop"},
                                          {"semantic.layers=[1, 0]", "semantic.layers"},
                                          {R"(semantic={"head": "dpt", "layers": [0, 1]})", "none or 4 blocks"},
                                          {"semantic.head=upernet", "semantic.head"},
                                          {"semantic.ignored=256", "semantic.ignored"},
                                          {"semantic.size=3", "semantic.size"}}) {
    const std::string message = error_of([&, s = setting] { semantic_recipe(maps, {s}); });
    EXPECT_TRUE(contains(message, expected)) << message;
  }
  const Recipe weighted = semantic_recipe(maps, {"loss.class_weights=[1, 2]"});
  EXPECT_TRUE(contains(error_of([&] { train_to(testing::scratch_folder() / "run", weighted); }), "each of 3 classes"));
}

TEST(SemanticRun, SeveralProcessesAreAnError) {
  const Recipe recipe = semantic_recipe(make_maps(2, 1));
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    EXPECT_EQ(
        error_of([&] { train(recipe, {.folder = testing::scratch_folder() / "run", .communicator = communicator}); }),
        "objective: expected one process for \"semantic\", got 2 processes");
  });
}

}  // namespace
}  // namespace vitrail::train
