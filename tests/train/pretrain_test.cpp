// SPDX-License-Identifier: Apache-2.0
// The objective "pretrain", with the method "diet".
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/train/training_runs.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/pretrain/pretrain_data_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_internal.h"
#include "vitrail/train/recipe/default_recipe.h"

namespace vitrail::train {
namespace {

Recipe diet_recipe(const fs::path& images, const std::vector<std::string>& settings = {}) {
  const std::string recipe =
      R"({"objective": "pretrain",
          "model": {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2,
                    "drop_path_rate": 0.1},
          "data": {"train": ")" +
      (images / "train").string() + R"(", "workers": 1}, "epochs": 2, "batch_size": 16,
          "optimizer": {"name": "adamw", "lr": 1e-3}, "schedule": {"name": "cosine", "warmup_epochs": 0.5},
          "augment": {"flip": "random", "random_resized_crop": {"scale": [0.5, 1]}},
          "loss": {"label_smoothing": 0.2}, "log_every": 1, "checkpoint": {"every_steps": 2, "every_minutes": 0}})";
  return parse_recipe(recipe, "r.json", settings);
}

TEST(Pretrain, WritesAModelWithoutAHead) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(run, diet_recipe(images));
  EXPECT_EQ(result.step, 12);  // 108 images in batches of 16, the last one left out
  ASSERT_TRUE(result.start && result.best && result.last);
  EXPECT_EQ(result.metrics.front().name, "retrieval");
  EXPECT_EQ(result.validation_images, 12);
  const models::OpenedModel opened = models::open_model(run / "model", {});
  EXPECT_EQ(opened.config.vit.num_classes, 0);
  EXPECT_EQ(opened.config.vit.embed_dim, 16);
  const auto summary = nlohmann::json::parse(read_text(run / "summary.json"));
  EXPECT_EQ(summary["start_retrieval"], result.start->value);
  EXPECT_TRUE(testing::contains(read_text(run / "metrics.csv"), "\nstart,0,0"));
  EXPECT_TRUE(testing::contains(read_text(run / "model/README.md"), "108 images of"));
}

// The labels of the batches are the positions among the training images: the loss of a classifier of 108 equal rows is
// log 108 whatever the features, with any smoothing.
TEST(Pretrain, ClassifiesTheTrainingImagesByTheirPosition) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  const Recipe recipe = diet_recipe(images);
  const ProcessGroup alone{nullptr};
  Pretrain objective({.recipe = recipe, .group = alone, .threads = 1, .folder = run, .log = [](const auto&) {}});
  const Tensor classifier = objective.model().parameter("pretrain.classifier.weight");
  EXPECT_EQ(classifier.shape(), (Shape{108, 16}));
  classifier.copy_(Tensor::zeros(classifier.shape()));
  objective.start_epoch(0, 0);
  double loss = 0;
  objective.train_batch({}, [&](const Tensor& value, const BatchResult& local) {
    loss = value.item<double>();
    EXPECT_EQ(local.images, 16);
    return local;
  });
  EXPECT_NEAR(loss, std::log(108), 1e-5);
}

TEST(Pretrain, LearnsToTellTheImagesApart) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  std::vector<double> losses;
  TrainerCallbacks callbacks;
  callbacks.epoch = [&](const EpochResult& epoch) { losses.push_back(epoch.train.loss); };
  train(diet_recipe(images, {"epochs=30", "loss.label_smoothing=0", "augment.random_resized_crop=null",
                             "optimizer.lr=3e-3", "pretrain.head_lr=3e-2"}),
        {.folder = run, .threads = 2}, callbacks);
  EXPECT_NEAR(losses.front(), std::log(108), 0.7);
  EXPECT_LT(losses.back(), 0.65 * std::log(108));
}

// A learning rate of 10 destroys the features.
TEST(Pretrain, KeepsTheStartWhereNoEpochIsBetter) {
  const fs::path images = make_images(40), scratch = testing::scratch_folder(), labelled = make_images(20, 10);
  train_to(scratch / "start", diet_recipe(images, {"epochs=1", "optimizer.lr=1e-9"}));
  const TrainingResult result =
      train_to(scratch / "run",
               diet_recipe(images, {"model=null", "model.init=" + (scratch / "start/model").string(),
                                    "optimizer.name=sgd", "optimizer.lr=10", "pretrain.probe=" + labelled.string()}));
  ASSERT_TRUE(result.start && result.best);
  EXPECT_EQ(result.best_epoch, 0);
  EXPECT_EQ(result.best->value, result.start->value);
  EXPECT_EQ(read_text(scratch / "run/model/model.safetensors"), read_text(scratch / "start/model/model.safetensors"));
}

TEST(Pretrain, MeasuresAProbe) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  const TrainingResult result = train_to(run, diet_recipe(images, {"pretrain.probe=" + images.string(), "epochs=1"}));
  std::vector<std::string> names;
  for (const Metric& metric : result.metrics) names.push_back(metric.name);
  EXPECT_EQ(names, (std::vector<std::string>{"knn", "linear", "retrieval", "rank"}));
  EXPECT_EQ(result.validation_images, 12);  // the labelled images of the split test
}

TEST(Pretrain, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const fs::path images = make_images(40), scratch = testing::scratch_folder();
  const Recipe recipe = diet_recipe(images, {"accumulate=2"});
  train_to(scratch / "whole", recipe);
  for (const int steps : {1, 2, 1}) train_to(scratch / "parts", recipe, true, steps);
  EXPECT_FALSE(train_to(scratch / "parts", recipe, true).stopped);
  expect_same_runs(scratch / "whole", scratch / "parts");
}

TEST(Pretrain, RefusesWhatItCannotUse) {
  const fs::path images = make_images(40), few = make_images(10);
  const auto error_with = [&](const fs::path& data, const std::vector<std::string>& settings) {
    return testing::error_of([&] { train_to(testing::scratch_folder() / "run", diet_recipe(data, settings)); });
  };
  EXPECT_ERROR(error_with(few, {}), (few / "train").string(), "30");
  EXPECT_ERROR(error_with(images, {"data.holdout=120"}), "data.holdout", "120");
  EXPECT_TRUE(testing::contains(error_with(images, {"data.val=" + images.string()}), "neither val nor test"));
  EXPECT_TRUE(testing::contains(error_with(images, {"loss.name=bce"}), "loss: expected the defaults"));
  const testing::Warnings warnings;
  open_unlabelled_data(diet_recipe(images).data, 3);
  EXPECT_TRUE(warnings.any("108 training images; with fewer than 1000"));
}

TEST(PretrainDefaults, AreThoseOfDiet) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  train_to(run, diet_recipe(images, {"epochs=1"}));
  const DefaultRecipe chosen = default_recipe({.data = (images / "train").string(),
                                               .model = (run / "model").string(),
                                               .objective = "pretrain",
                                               .settings = {"model.img_size=16"}});
  EXPECT_EQ(chosen.recipe.objective, "pretrain");
  EXPECT_EQ(pretrain_of(chosen.recipe).method, "diet");
  EXPECT_EQ(chosen.recipe.batch_size, 8);  // for at least 10 steps an epoch
  EXPECT_EQ(chosen.training_images, 108);
  EXPECT_EQ(chosen.architecture.img_size[0], 16);
  EXPECT_EQ(chosen.architecture.num_classes, 108);
  EXPECT_EQ(chosen.recipe.loss.label_smoothing, 0.3);
}

}  // namespace
}  // namespace vitrail::train
