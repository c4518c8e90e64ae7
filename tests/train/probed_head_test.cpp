// SPDX-License-Identifier: Apache-2.0
// Training from the head of a linear probe: model.head "probe".
#include "tests/dist/thread_communicator.h"
#include "tests/support/models.h"
#include "tests/train/training_runs.h"
#include "vitrail/models/load.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"

namespace vitrail::train {
namespace {

// Without a learning rate, so that the weights stay those that training starts from.
Recipe start_recipe(const fs::path& images, const std::string& init, const std::vector<std::string>& settings = {}) {
  return parse_recipe(R"({"model": {"init": ")" + init + R"(", "head": "probe"}, "batch_size": 8, "epochs": 1,
      "optimizer": {"name": "sgd", "lr": 0}, "data": {"train": ")" +
                          images.string() + R"(", "holdout": 0}})",
                      "r.json", settings);
}

std::string fixture_model() { return testing::model_fixture("timm_token").parent_path().string(); }

models::VisionTransformer model_of(const fs::path& run) {
  return models::build_model(models::open_model((run / "model").string()));
}

void expect_same_heads(const models::VisionTransformer& a, const models::VisionTransformer& b) {
  for (const char* name : {"head.weight", "head.bias"})
    EXPECT_TRUE(testing::close(a.parameter(name), b.parameter(name), 0)) << name;
}

TEST(ProbedHead, IsThatOfALinearProbe) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "start", start_recipe(images, fixture_model()));
  train_to(runs / "probe", start_recipe(images, fixture_model(), {"objective=probe"}));
  expect_same_heads(model_of(runs / "start"), model_of(runs / "probe"));
}

// Each process reads all images.
TEST(ProbedHead, IsTheSameInSeveralProcesses) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "one", start_recipe(images, fixture_model()), false, std::nullopt, 1);
  const Recipe recipe = start_recipe(images, fixture_model(), {"batch_size=4"});
  dist::testing::run_ranks(2, [&](const std::shared_ptr<dist::Communicator>& communicator) {
    train(recipe, {.folder = runs / "two", .threads = 1, .communicator = communicator});
  });
  expect_same_heads(model_of(runs / "one"), model_of(runs / "two"));
}

TEST(ProbedHead, ReplacesNoHeadThatKnowsTheClasses) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "first", parse_recipe(tiny_recipe(images), "r.json", {"epochs=1"}));
  train_to(runs / "second", start_recipe(images, (runs / "first/model").string()));
  expect_same_heads(model_of(runs / "first"), model_of(runs / "second"));
}

// A second training begins as the first, with the features of all images.
TEST(ProbedHead, IsOfAllImagesInASecondTraining) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  train_to(runs / "again", start_recipe(images, fixture_model(), {"data.holdout=12", "data.retrain=true"}));
  train_to(runs / "all", start_recipe(images, fixture_model()));
  expect_same_heads(model_of(runs / "again"), model_of(runs / "all"));
}

// Steps of this size destroy the model.
TEST(ProbedHead, IsKeptWhereNoEpochIsBetter) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const std::vector<std::string> settings{"optimizer.lr=3", "clip=1", "epochs=2", "data.holdout=12"};
  const TrainingResult result = train_to(runs / "kept", start_recipe(images, fixture_model(), settings));
  ASSERT_TRUE(result.start);
  EXPECT_EQ(result.best_epoch, 0);
  EXPECT_EQ(result.best->value, result.start->value);
  train_to(runs / "start", start_recipe(images, fixture_model(), {"data.holdout=12"}));
  expect_same_heads(model_of(runs / "kept"), model_of(runs / "start"));
}

TEST(ProbedHead, IsOfAllImagesWhereNoEpochIsBetter) {
  const fs::path images = make_images(), runs = testing::scratch_folder();
  const Recipe recipe = start_recipe(images, fixture_model(),
                                     {"optimizer.lr=3", "clip=1", "epochs=2", "data.holdout=12", "data.retrain=true"});
  const TrainingResult result = train_to(runs / "again", recipe);
  ASSERT_TRUE(result.retrained);
  EXPECT_EQ(result.retrained->epochs, 0);
  EXPECT_EQ(result.retrained->images, 60);
  EXPECT_FALSE(fs::exists(runs / "again/retrain"));
  EXPECT_TRUE(contains(read_text(runs / "again/model/README.md"), "These weights are the start, computed again from"));
  train_to(runs / "probe", start_recipe(images, fixture_model(), {"objective=probe"}));
  expect_same_heads(model_of(runs / "again"), model_of(runs / "probe"));
}

}  // namespace
}  // namespace vitrail::train
