// SPDX-License-Identifier: Apache-2.0
// The objective "pretrain", with the method "diet".
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/dist/thread_communicator.h"
#include "tests/support/errors.h"
#include "tests/train/metrics_comparison.h"
#include "tests/train/training_runs.h"
#include "vitrail/autograd/engine.h"
#include "vitrail/models/load.h"
#include "vitrail/models/mae/initial_params.h"
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

// With a classifier of zeros, the gradient of row n is (the mean of the features − the features of image n) / images,
// and that of a row without an image is the same for all such rows.
TEST(Pretrain, EachTrainingImageHasARowOfItsOwn) {
  const fs::path images = make_images(40);
  const Recipe recipe = diet_recipe(images, {"batch_size=108", "loss.label_smoothing=0"});
  const ProcessGroup alone{nullptr};
  Pretrain objective({.recipe = recipe, .group = alone, .threads = 1, .folder = {}, .log = [](const auto&) {}});
  const Tensor classifier = objective.model().parameter("pretrain.classifier.weight");
  classifier.copy_(Tensor::zeros(classifier.shape()));
  objective.model().requires_grad(true);
  objective.start_epoch(0, 0);
  objective.train_batch({}, [&](const Tensor& loss, const BatchResult& local) {
    autograd::backward(loss);
    return local;
  });
  const Tensor gradient = autograd::grad_of(objective.model().parameter("pretrain.classifier.weight"));
  std::set<std::vector<float>> rows;
  for (int64_t n = 0; n < 108; ++n) rows.emplace(gradient.data<float>() + n * 16, gradient.data<float>() + n * 16 + 16);
  EXPECT_EQ(rows.size(), 108u);
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

// Settings of a method that make a small run.
std::vector<std::string> settings_of(const std::string& method, const fs::path& teacher) {
  std::vector<std::string> settings{"pretrain.method=" + method};
  const std::vector<std::string> views{"pretrain.local_views=1", "pretrain.local_size=4", "pretrain.projector_dim=12"};
  if (method != "diet") settings.emplace_back("loss.label_smoothing=0");
  if (method == "lejepa" || method == "dino") settings.insert(settings.end(), views.begin(), views.end());
  if (method == "lejepa") settings.emplace_back("pretrain.directions=16");
  if (method == "dino") settings.emplace_back("pretrain.prototypes=10");
  if (method == "mae") settings.emplace_back("pretrain.mask_ratio=0.5");
  if (method == "distill") settings.emplace_back("pretrain.teacher=" + teacher.string());
  if (method == "distill") settings.emplace_back("pretrain.views=2");
  return settings;
}

class PretrainMethodRun : public ::testing::TestWithParam<std::string> {
 protected:
  PretrainMethodRun() {
    if (GetParam() == "distill") train_to(scratch_ / "teacher", diet_recipe(images_, {"epochs=1"}));
  }
  Recipe recipe(std::vector<std::string> settings = {}) const {
    const std::vector<std::string> own = settings_of(GetParam(), scratch_ / "teacher/model");
    settings.insert(settings.end(), own.begin(), own.end());
    return diet_recipe(images_, settings);
  }

  const fs::path images_ = make_images(40), scratch_ = testing::scratch_folder();
};

TEST_P(PretrainMethodRun, StoppedAndResumedGivesTheBitsOfAnUninterruptedRun) {
  const Recipe recipe = this->recipe({"accumulate=2"});
  train_to(scratch_ / "whole", recipe);
  for (const int steps : {1, 2, 1}) train_to(scratch_ / "parts", recipe, true, steps);
  EXPECT_FALSE(train_to(scratch_ / "parts", recipe, true).stopped);
  expect_same_runs(scratch_ / "whole", scratch_ / "parts");
}

TEST_P(PretrainMethodRun, TheModelOpensWithoutItsLayersAndHasChanged) {
  const Recipe recipe = this->recipe({"pretrain.keep=last"});
  train_to(scratch_ / "run", recipe, false, 1);
  const CheckpointState first = load_checkpoint(scratch_ / "run/checkpoints/last.safetensors");
  train_to(scratch_ / "run", recipe, true);
  const models::OpenedModel opened = models::open_model(scratch_ / "run/model", {});
  EXPECT_EQ(opened.config.vit.num_classes, 0);
  const models::VisionTransformer model = models::build_model(opened);
  const CheckpointState state = load_checkpoint(scratch_ / "run/checkpoints/last.safetensors");
  const std::string prefix = GetParam() == "dino" ? "pretrain.teacher." : "";
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const auto kept = std::ranges::find(state.model, prefix + parameter.name, &nn::NamedTensor::name);
    ASSERT_NE(kept, state.model.end()) << parameter.name;
    EXPECT_TRUE(testing::close(parameter.tensor, kept->tensor, 0)) << parameter.name;
  }
  const auto weight_of = [](const CheckpointState& checkpoint) {
    return std::ranges::find(checkpoint.model, "blocks.0.attn.qkv.weight", &nn::NamedTensor::name)->tensor;
  };
  EXPECT_FALSE(testing::close(weight_of(state), weight_of(first), 0));
}

// Threads as processes.  With dropped paths, and for LeJEPA with statistics of the whole batch.
TEST_P(PretrainMethodRun, TwoProcessesGiveTheLossesOfOneWithTheDoubleBatch) {
  train_to(scratch_ / "one", recipe(), false, std::nullopt, 1);
  const Recipe half = recipe({"batch_size=8"});
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    train(half, {.folder = scratch_ / "two", .threads = 1, .communicator = communicator});
  });
  expect_same_losses(scratch_ / "one", scratch_ / "two");
  const auto one = train_column(scratch_ / "one", Column::gradient_norm),
             two = train_column(scratch_ / "two", Column::gradient_norm);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_NEAR(one[i], two[i], 1e-3 * one[i]) << i;
  // "val,step,epoch,loss,…"
  const auto held_out_loss = [&](const char* run) {
    std::string row = read_text(scratch_ / run / "metrics.csv");
    row = row.substr(row.rfind("\nval,") + 1);
    for (int column = 0; column < 3; ++column) row = row.substr(row.find(',') + 1);
    return std::stod(row);
  };
  EXPECT_NEAR(held_out_loss("one"), held_out_loss("two"), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Methods, PretrainMethodRun, ::testing::ValuesIn(pretrain_method_names()),
                         [](const auto& info) { return info.param; });

TEST(Pretrain, MasksOtherPatchesInEachEpochAndTheSameOfHeldOutImages) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  // Without augmentation and learning, two epochs of all images differ in their masks alone.
  const Recipe recipe = diet_recipe(
      images, {"pretrain.method=mae", "loss.label_smoothing=0", "optimizer.lr=1e-12", "pretrain.head_lr=0",
               "batch_size=54", "model.drop_path_rate=0", "augment.flip=none", "augment.random_resized_crop=null"});
  std::vector<double> training, held_out;
  TrainerCallbacks callbacks;
  callbacks.epoch = [&](const EpochResult& epoch) {
    training.push_back(epoch.train.loss);
    held_out.push_back(epoch.validation->loss);
  };
  train(recipe, {.folder = run, .threads = 2}, callbacks);
  EXPECT_GT(std::abs(training[0] - training[1]), 1e-4);
  EXPECT_NEAR(held_out[0], held_out[1], 1e-6);
}

TEST(Pretrain, KeepsTheLowestHeldOutLossWithoutAProbe) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  const Recipe recipe = diet_recipe(images, {"pretrain.method=mae", "loss.label_smoothing=0", "epochs=6"});
  std::vector<double> losses;
  TrainerCallbacks callbacks;
  callbacks.epoch = [&](const EpochResult& epoch) { losses.push_back(epoch.validation->loss); };
  const TrainingResult result = train(recipe, {.folder = run, .threads = 2}, callbacks);
  EXPECT_EQ(result.best_epoch, 1 + std::ranges::min_element(losses) - losses.begin());
  EXPECT_LT(losses.back(), losses.front());
}

TEST(Pretrain, TheReportShowsViewsNeighboursAndReconstructions) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  train_to(run, diet_recipe(images, {"pretrain.method=mae", "loss.label_smoothing=0", "epochs=2"}));
  const std::string page = read_text(run / "report.html");
  const auto images_under = [&](const std::string& title) {
    const size_t begin = page.find("<h2>" + title + "</h2>");
    if (begin == page.npos) return int64_t{-1};
    int64_t count = 0;
    for (size_t at = begin; (at = page.find("<img", at + 1)) < page.find("<h2>", begin + 1);) ++count;
    return count;
  };
  EXPECT_EQ(images_under("Training images, and views of each as the model sees them"), 4 * (1 + 7));
  EXPECT_EQ(images_under("Held-out images, the patches that the model sees, and what it predicts of the others"),
            4 * 3);
  EXPECT_EQ(images_under("Held-out images, each before its nearest three, before training"), 8 * 4);
  EXPECT_EQ(images_under("Held-out images, each before its nearest three"), 8 * 4);
  EXPECT_EQ(images_under("Principal components of the patches of held-out images, before training"), 8);
  EXPECT_EQ(images_under("Principal components of the patches of held-out images"), 8);
  EXPECT_TRUE(testing::contains(page, "before training</span>"));  // the legend of the dashed line
  EXPECT_TRUE(testing::contains(page, "effective rank, before → after training"));
}

// The positions are sines and cosines, which are not trained, and zeros for the class token.
TEST(Pretrain, ANewModelOfMaeHasFixedPositions) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  train_to(run, diet_recipe(images, {"pretrain.method=mae", "loss.label_smoothing=0", "optimizer.lr=1e-2"}));
  Tensor expected = Tensor::zeros({1, 5, 16});
  models::fixed_positions({2, 2})(expected, 0);
  for (const char* folder : {"model", "last"}) {
    const models::OpenedModel opened = models::open_model(run / folder, {});
    EXPECT_TRUE(testing::close(models::build_model(opened).parameter("pos_embed"), expected, 1e-6)) << folder;
  }
}

TEST(Pretrain, RefusesCopiesOfOneImage) {
  const fs::path copies = testing::scratch_folder(), black = testing::scratch_folder();
  const std::string image = read_text(make_images(1) / "train/red/00.png");
  for (int i = 0; i < 120; ++i) {
    write_file(copies / (std::to_string(i) + ".png"), image);
    const int64_t side = i % 2 == 0 ? 1 : 9;
    image::write_png(black / (std::to_string(i) + ".png"), image::make_image(side, side, 3));
  }
  for (const fs::path& folder : {copies, black}) {
    Recipe recipe = diet_recipe(folder);
    recipe.data.train = folder.string();
    const std::string problem = testing::error_of([&] { train_to(testing::scratch_folder() / "run", recipe); });
    EXPECT_TRUE(testing::contains(problem, folder.string() + ": expected images that differ")) << problem;
  }
}

// With a patch embedding of zeros, all images have the same features.
// Measures a model that sees no difference between images.
void measure_collapsed(const std::vector<std::string>& settings) {
  const fs::path images = make_images(40);
  std::vector<std::string> all{"model.embed_dim=32", "data.holdout=40"};
  all.insert(all.end(), settings.begin(), settings.end());
  const Recipe recipe = diet_recipe(images, all);
  const ProcessGroup alone{nullptr};
  Pretrain objective({.recipe = recipe, .group = alone, .threads = 1, .folder = {}, .log = [](const auto&) {}});
  const auto measure = [&] { return objective.measure(Split::validation, [](int64_t, int64_t) {}); };
  objective.start_from(measure());
  EXPECT_NO_THROW(measure());
  const Tensor weight = objective.model().parameter("patch_embed.proj.weight");
  weight.copy_(Tensor::zeros(weight.shape()));
  measure();
}

TEST(Pretrain, EndsWhereFeaturesCollapse) {
  const std::string problem = testing::error_of([] { measure_collapsed({}); });
  EXPECT_TRUE(testing::contains(problem, "they have collapsed")) << problem;
}

// The rank of a new model's features is small.
TEST(Pretrain, DoesNotEndForTheRankOfMaesFeatures) {
  EXPECT_NO_THROW(measure_collapsed({"pretrain.method=mae", "loss.label_smoothing=0", "pretrain.mask_ratio=0.5"}));
}

// A probe decides between weights instead of the held-out loss, but for MAE.
TEST(Pretrain, TheHeldOutLossOfMaeDecidesAlsoWithAProbe) {
  const auto loss_decides = [](const std::string& method, bool probe) {
    Recipe recipe;
    recipe.section = PretrainRecipe{.method = method};
    return pretrain_metrics(probe, probe, pretrain_method_of(recipe)).validates_loss;
  };
  EXPECT_TRUE(loss_decides("mae", true));
  EXPECT_FALSE(loss_decides("lejepa", true));
  EXPECT_TRUE(loss_decides("lejepa", false));
  EXPECT_FALSE(loss_decides("diet", false));
}

// The effective rank of equal features is 1, of at most as many as there are images.
TEST(Pretrain, TheRankIsAShareOfTheLargestPossibleOne) {
  const fs::path images = make_images(40);
  const Recipe recipe = diet_recipe(images, {"pretrain.head_lr=5e-3"});
  const ProcessGroup alone{nullptr};
  Pretrain objective({.recipe = recipe, .group = alone, .threads = 1, .folder = {}, .log = [](const auto&) {}});
  const Tensor weight = objective.model().parameter("patch_embed.proj.weight");
  weight.copy_(Tensor::zeros(weight.shape()));
  const Measurement measured = objective.measure(Split::validation, [](int64_t, int64_t) {});
  EXPECT_EQ(measured.scores.back().name, "rank");
  EXPECT_NEAR(measured.scores.back().value, 1.0 / 12, 1e-4);  // 12 images have 16 features
  ASSERT_EQ(objective.rate_scales().size(), 1u);
  EXPECT_NEAR(objective.rate_scales()[0].factor, 5, 1e-9);  // head_lr of lr 1e-3
}

// Two patches have no three principal components.
TEST(Pretrain, RunsWithFewerPatchesThanColours) {
  const fs::path images = make_images(40), run = testing::scratch_folder() / "run";
  EXPECT_FALSE(train_to(run, diet_recipe(images, {"model.patch_size=8", "data.holdout=2", "epochs=1"})).stopped);
  EXPECT_FALSE(testing::contains(read_text(run / "report.html"), "Principal components"));
}

// Dropped patches change the loss of the first step, not of a step after the share of the epochs.
TEST(Pretrain, DropsPatchesInTheFirstEpochs) {
  const fs::path images = make_images(40), scratch = testing::scratch_folder();
  const auto losses_of = [&](const char* name, const std::vector<std::string>& settings) {
    train_to(scratch / name, diet_recipe(images, settings));
    return train_column(scratch / name, Column::loss);
  };
  const std::vector<std::string> still{"optimizer.lr=1e-12", "pretrain.head_lr=0"};
  std::vector<std::string> dropping = still;
  dropping.emplace_back(R"(token_drop={"rate": 0.5, "until": 0.5})");
  const auto plain = losses_of("plain", still), dropped = losses_of("dropped", dropping);
  EXPECT_NE(plain.front(), dropped.front());
  EXPECT_NEAR(plain.back(), dropped.back(), 1e-6);
}

// The decoder is beside the model, and a run that starts from it goes on with the same loss.
TEST(Pretrain, AnotherRunOfMaeTakesTheDecoder) {
  const fs::path images = make_images(40), scratch = testing::scratch_folder();
  const std::vector<std::string> mae{"pretrain.method=mae", "loss.label_smoothing=0", "pretrain.keep=last"};
  const auto losses_of = [&](const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(), mae.begin(), mae.end());
    std::vector<double> losses;
    TrainerCallbacks callbacks;
    callbacks.epoch = [&](const EpochResult& epoch) { losses.push_back(epoch.validation->loss); };
    train(diet_recipe(images, settings), {.folder = scratch / name, .threads = 2}, callbacks);
    return losses;
  };
  const double last = losses_of("first", {"epochs=4", "optimizer.lr=3e-3"}).back();
  const std::string model = (scratch / "first").string();
  const std::vector<std::string> from{"model=null", "model.init=" + model, "optimizer.lr=1e-12", "pretrain.head_lr=0",
                                      "epochs=1"};
  EXPECT_NEAR(losses_of("second", from).front(), last, 1e-5);
  fs::remove(scratch / "first/model/pretrain.safetensors");
  EXPECT_GT(losses_of("third", from).front(), last + 0.1);
}

TEST(Pretrain, RefusesSettingsOfOtherMethods) {
  const fs::path images = make_images(40);
  const auto problem_of = [&](const std::vector<std::string>& settings) {
    return testing::error_of([&] { diet_recipe(images, settings); });
  };
  EXPECT_TRUE(testing::contains(problem_of({"pretrain.mask_ratio=0.5"}),
                                "pretrain.mask_ratio: expected the default 0.75 for the method \"diet\""));
  EXPECT_TRUE(testing::contains(problem_of({"pretrain.method=mae"}), "loss: expected the defaults"));
  EXPECT_TRUE(testing::contains(problem_of({"data.unreadable=leave_out"}), "data.unreadable"));
  EXPECT_TRUE(testing::contains(testing::error_of([&] {
                                  train_to(testing::scratch_folder() / "run",
                                           diet_recipe(images, {"pretrain.method=distill", "loss.label_smoothing=0"}));
                                }),
                                "pretrain.teacher"));
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
  EXPECT_TRUE(testing::contains(error_with(images, {"model.model_args.global_pool="}), "model that pools its tokens"));
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
  const DefaultRecipe short_run = default_recipe({.data = (images / "train").string(),
                                                  .model = (run / "model").string(),
                                                  .objective = "pretrain",
                                                  .settings = {"epochs=1"}});
  EXPECT_EQ(short_run.recipe.schedule.warmup_epochs, 0.1);  // a tenth of the epochs that the settings say
}

TEST(PretrainDefaults, ChooseTheMethod) {
  EXPECT_EQ(default_pretrain_method(20'000, false, false), "diet");
  EXPECT_EQ(default_pretrain_method(20'001, false, false), "lejepa");
  EXPECT_EQ(default_pretrain_method(500, true, false), "mae");
  EXPECT_EQ(default_pretrain_method(500, true, true), "distill");
}

TEST(PretrainDefaults, OfANewModelAreThoseOfMae) {
  const fs::path images = make_images(40);
  const DefaultRecipe chosen =
      default_recipe({.data = (images / "train").string(), .objective = "pretrain", .preset = Preset::scratch});
  EXPECT_EQ(pretrain_of(chosen.recipe).method, "mae");
  EXPECT_TRUE(chosen.recipe.model.init.empty());
  EXPECT_EQ(chosen.recipe.optimizer.beta2, 0.95);
  EXPECT_EQ(chosen.architecture.fc_norm, std::nullopt);  // before the method says so
  EXPECT_TRUE(testing::contains(chosen.recipe.model.model_args, "\"fc_norm\":false"));
}

// Small images have no local views.
TEST(PretrainDefaults, OfLejepaDependOnTheSizeOfImages) {
  const fs::path images = make_images(40);
  const auto views_of = [&](const char* size) {
    const DefaultRecipe chosen = default_recipe({.data = (images / "train").string(),
                                                 .objective = "pretrain",
                                                 .settings = {"pretrain.method=lejepa", str("model.img_size=", size)},
                                                 .preset = Preset::scratch});
    return std::pair(pretrain_of(chosen.recipe).global_views, pretrain_of(chosen.recipe).local_views);
  };
  EXPECT_EQ(views_of("32"), std::pair(int64_t{4}, int64_t{0}));
  EXPECT_EQ(views_of("96"), std::pair(int64_t{2}, int64_t{6}));
}

}  // namespace
}  // namespace vitrail::train
