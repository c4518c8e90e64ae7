// SPDX-License-Identifier: Apache-2.0
// The options of the loaders follow from the recipe.
#include "vitrail/train/run/loader_setup_internal.h"

#include <set>

#include "tests/dist/thread_communicator.h"
#include "tests/train/training_fixture.h"

namespace vitrail::train {
namespace {

data::LoaderOptions options_for(const std::vector<std::string>& settings, const RunData& data = {}) {
  const Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json", settings);
  return training_options(recipe, data, image::EvalTransform{}, 3, 6, ProcessGroup(nullptr));
}

TEST(LoaderSetup, LastEpochsAreWithoutAugmentationAndMixing) {
  struct Case {
    const char* epochs;
    int64_t first;
  };
  for (const auto& [epochs, first] : {Case{"0", -1}, {"1", 9}, {"2.2", 7}, {"2.5", 7}, {"10", 0}, {"12", 0}}) {
    const auto setting = [epochs = epochs](const char* field) {
      return std::string("augment.") + field + "=" + epochs;
    };
    EXPECT_EQ(options_for({"epochs=10", setting("plain_epochs")}).augment->off_epoch, first) << epochs;
    EXPECT_EQ(options_for({"epochs=10", setting("plain_epochs")}).mix.off_epoch, -1) << epochs;
    EXPECT_EQ(options_for({"epochs=10", setting("unmixed_epochs")}).mix.off_epoch, first) << epochs;
    EXPECT_EQ(options_for({"epochs=10", setting("unmixed_epochs")}).augment->off_epoch, -1) << epochs;
  }
}

TEST(LoaderSetup, FieldsOfTheRecipeArePassedOn) {
  RunData data;
  data.classes = {"a", "b", "c"};
  data.train.samples = {4, 2, 9};
  const data::LoaderOptions options =
      options_for({"seed=5", "batch_size=6", "augment.repeats=3", "augment.mixup=0.7", "augment.cutmix=0.6",
                   "augment.policy=rand-m9", "augment.mix_probability=0.25", "augment.switch_probability=0.75",
                   "augment.mix_mode=element", "loss.label_smoothing=0.2", "data.in_flight=2", "data.workers=4"},
                  data);
  EXPECT_EQ(options.seed, 5u);
  EXPECT_EQ(options.batch_size, 6);
  EXPECT_EQ(options.repeats, 3);
  EXPECT_EQ(options.mix.mixup_alpha, 0.7);
  EXPECT_EQ(options.mix.cutmix_alpha, 0.6);
  EXPECT_EQ(options.mix.probability, 0.25);
  EXPECT_EQ(options.mix.switch_probability, 0.75);
  EXPECT_EQ(options.mix.mode, data::MixupOptions::Mode::element);
  EXPECT_EQ(options.mix.label_smoothing, 0.2);
  EXPECT_EQ(options.mix.classes, 3);
  EXPECT_EQ(options.augment->policy, "rand-m9");
  EXPECT_EQ(options.subset, data.train.samples);
  EXPECT_EQ(options.in_flight, 2);
  EXPECT_EQ(options.threads, 4);
  EXPECT_TRUE(options.shuffle);
  EXPECT_EQ(options_for({"data.workers=0"}).threads, 3);  // half of the compute threads
}

TEST(LoaderSetup, EvaluationReadsItsImagesOnceInOrder) {
  const fs::path images = make_images();
  const Recipe recipe = parse_recipe(tiny_recipe(images), "r.json", {"augment.repeats=2"});
  const RunData data = open_data(recipe.data, 3);
  image::EvalTransform transform;
  transform.size = {8, 8};
  const auto training = training_options(recipe, data, transform, 3, 2, ProcessGroup(nullptr));
  data::Loader loader = evaluation_loader(data.validation, training);
  loader.start(0);
  std::vector<int64_t> seen;
  while (const auto batch = loader.next()) {
    EXPECT_FALSE(batch->targets.defined());
    seen.insert(seen.end(), batch->samples.begin(), batch->samples.end());
  }
  EXPECT_EQ(seen, data.validation.samples);
  data::Loader train_loader(data.train.dataset, training);
  train_loader.start(0);
  const std::set<int64_t> held_out(seen.begin(), seen.end());
  while (const auto batch = train_loader.next()) {
    for (const int64_t sample : batch->samples) EXPECT_FALSE(held_out.contains(sample));
  }
}

TEST(LoaderSetup, WhatHappensToUnreadableImagesIsTheRecipes) {
  EXPECT_EQ(options_for({}).unreadable, data::Unreadable::error);
  EXPECT_EQ(options_for({"data.unreadable=skip"}).unreadable, data::Unreadable::replace);
  EXPECT_EQ(options_for({"data.unreadable=leave_out", "augment.mixup=0"}).unreadable, data::Unreadable::leave_out);
}

TEST(LoaderSetup, ViewsAreThoseOfTheDistillation) {
  const std::string teacher = R"(loss.distillation={"teacher": "t", "views": 4})";
  const std::string plain = "augment.mixup=0", epochs = "loss.distillation.view_epochs=2";
  EXPECT_EQ(options_for({}).augment->view_epochs, data::AugmentOptions().view_epochs);
  EXPECT_EQ(options_for({teacher, plain}).augment->views, 4);
  EXPECT_EQ(options_for({teacher, plain}).augment->view_epochs, -1);
  EXPECT_EQ(options_for({teacher, plain, epochs}).augment->view_epochs, 2);
}

TEST(LoaderSetup, BalanceIsTheRecipesAndThereIsAThreadForASingleOne) {
  EXPECT_FALSE(options_for({}).balance);
  EXPECT_TRUE(options_for({"data.balance=true"}).balance);
  const Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json", {"data.workers=0"});
  EXPECT_EQ(training_options(recipe, {}, image::EvalTransform{}, 1, 1, ProcessGroup(nullptr)).threads, 1);
  EXPECT_EQ(training_options(recipe, {}, image::EvalTransform{}, 1, 1, ProcessGroup(nullptr)).channels, 1);
}

TEST(LoaderSetup, AProcessReadsItsShare) {
  dist::testing::run_ranks(3, [](const std::shared_ptr<dist::Communicator>& communicator) {
    const Recipe recipe = parse_recipe(tiny_recipe("x"), "r.json");
    const auto options = training_options(recipe, {}, image::EvalTransform{}, 3, 6, ProcessGroup(communicator));
    EXPECT_EQ(options.ranks, 3);
    EXPECT_EQ(options.rank, communicator->rank());
  });
}

TEST(LoaderSetup, EvaluationLeavesOutWhatTrainingReplaces) {
  const fs::path images = make_images(3);
  write_file(images / "train/green/01.png", "none");
  image::EvalTransform transform;
  transform.size = {8, 8};
  const Subset subset{data::open_dataset(images, {.split = "train"}), {1, 4, 7}, "train"};
  for (const char* unreadable : {"skip", "leave_out", "error"}) {
    const Recipe recipe =
        parse_recipe(tiny_recipe(images), "r.json", {str("data.unreadable=", unreadable), "augment.mixup=0"});
    RunData data;
    data.train = subset;
    auto training = training_options(recipe, data, transform, 3, 2, ProcessGroup(nullptr));
    EXPECT_EQ(training.transform.size, transform.size);
    data::Loader loader = evaluation_loader(subset, training);
    EXPECT_EQ(loader.options().transform.size, transform.size);
    EXPECT_EQ(loader.options().subset, subset.samples);
    EXPECT_EQ(loader.options().batch_size, 8);
    EXPECT_FALSE(loader.options().shuffle);
    loader.start(0);
    if (std::string(unreadable) == "error") {
      EXPECT_THROW(loader.next(), Error);
      continue;
    }
    const auto batch = loader.next();
    EXPECT_EQ(batch->samples, (std::vector<int64_t>{1, 7}));
    EXPECT_EQ(batch->skipped, (std::vector<int64_t>{4}));
  }
}

}  // namespace
}  // namespace vitrail::train
