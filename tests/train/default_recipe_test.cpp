// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/default_recipe.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <tuple>

#include "tests/train/training_fixture.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/run/run_data_internal.h"
#include "vitrail/train/run/run_folder_internal.h"
#include "vitrail/train/trainer.h"

namespace vitrail::train {
namespace {

std::string small_model() { return testing::fixture("models/timm_token").string(); }  // 32×32 pixels

bool any_reason(const DefaultRecipe& chosen, const std::string& part) {
  return std::any_of(chosen.reasons.begin(), chosen.reasons.end(),
                     [&](const std::string& reason) { return contains(reason, part); });
}

TEST(DefaultRecipe, AProbeTrainsOnAllImages) {
  const DefaultRecipe chosen =
      default_recipe({.data = make_images().string(), .model = small_model(), .preset = Preset::probe});
  EXPECT_EQ(chosen.recipe.objective, "probe");
  EXPECT_EQ(chosen.training_images, 60);
  EXPECT_TRUE(any_reason(chosen, "logistic regression"));
  EXPECT_FALSE(any_reason(chosen, "epochs"));
  EXPECT_EQ(write_recipe(parse_recipe(write_recipe(chosen.recipe), "r.json")), write_recipe(chosen.recipe));
  const fs::path run = testing::scratch_folder() / "run";
  EXPECT_GT(train(chosen.recipe, {.folder = run, .threads = 1}).test->scores[0].value, 0.8);
}

TEST(DefaultRecipe, UsesTheSplitsOfTheDataset) {
  const fs::path images = make_images();
  DefaultRecipe chosen = default_recipe({.data = images.string(), .model = small_model()});
  EXPECT_EQ(chosen.recipe.data.train, images.string());
  EXPECT_EQ(chosen.recipe.data.test, images.string());
  EXPECT_EQ(chosen.recipe.data.val, "");
  EXPECT_EQ(chosen.training_images, 40);  // a third of 60 is held out
  EXPECT_EQ(chosen.validation_images, 20);
  EXPECT_TRUE(any_reason(chosen, "20 of 60 images are held out"));
  EXPECT_FALSE(any_reason(default_recipe({.data = images.string(), .model = small_model(), .cross_validated = true}),
                          "held out"));

  fs::rename(images / "test", images / "val");
  chosen = default_recipe({.data = images.string(), .model = small_model()});
  EXPECT_EQ(chosen.recipe.data.val, images.string());
  EXPECT_EQ(chosen.recipe.data.test, "");
  EXPECT_EQ(chosen.training_images, 60);
  EXPECT_EQ(chosen.validation_images, 12);
  EXPECT_FALSE(any_reason(chosen, "held out"));

  chosen = default_recipe({.data = (images / "train").string(), .model = small_model()});
  EXPECT_EQ(chosen.recipe.data.val + chosen.recipe.data.test, "");
  EXPECT_EQ(chosen.training_images, 40);
}

TEST(DefaultRecipe, OfAResumedRunHasItsDuration) {
  const fs::path images = make_images();
  DefaultRecipeOptions options{.data = images.string(), .model = small_model()};
  options.choose_epochs = [](const DefaultRecipe&) { return int64_t{50}; };
  const Recipe started = default_recipe(options).recipe;
  Recipe shortened = started;
  shortened.epochs = 4;
  options.resumed = shortened;
  const DefaultRecipe chosen = default_recipe(options);
  EXPECT_EQ(chosen.recipe.epochs, 4);
  EXPECT_EQ(chosen.recipe.patience, 25);
  EXPECT_EQ(chosen.recipe.schedule.warmup_epochs, 1);
  EXPECT_EQ(write_recipe(chosen.recipe), write_recipe(shortened)) << "nothing else depends on the epochs";
  EXPECT_TRUE(any_reason(chosen, "4 epochs, as the resumed run, ending after 25 without"));
  options.resumed->patience = 0;
  EXPECT_FALSE(any_reason(default_recipe(options), "ending after"));
}

TEST(DefaultRecipe, AnEpochHasAtLeastTenSteps) {
  for (const int per_class : {5, 20, 60, 200}) {
    const DefaultRecipe chosen = default_recipe({.data = make_images(per_class).string(), .model = small_model()});
    const int64_t steps = chosen.training_images / chosen.recipe.batch_size;
    EXPECT_TRUE(steps >= 10 || chosen.recipe.batch_size == 4) << per_class;
    EXPECT_LE(chosen.recipe.batch_size, 64);
    EXPECT_TRUE(any_reason(chosen, str("batch size ", chosen.recipe.batch_size, ", ", steps, " steps"))) << per_class;
  }
}

TEST(DefaultRecipe, MoreImagesHaveFewerPassesUnlessTheEpochsAreGiven) {
  const fs::path few = make_images(5), many = make_images(200);
  const auto epochs = [](const fs::path& images, std::optional<int64_t> given = {}) {
    return default_recipe({.data = images.string(), .model = small_model(), .epochs = given}).recipe.epochs;
  };
  EXPECT_GT(epochs(few), epochs(many));
  EXPECT_GE(epochs(many), 3);
  EXPECT_EQ(epochs(few, 7), 7);
}

// 40 / images^0.2 epochs; a batch is the power of two in a tenth of the images, from 4 to 64.
TEST(DefaultRecipe, NumbersFollowFromTheNumberOfImages) {
  struct Case {
    int per_class;
    int64_t batch_size, epochs;
  };
  for (const auto& [per_class, batch_size, epochs] : {Case{1, 3, 32}, {5, 4, 23}, {20, 4, 18}, {60, 16, 14}}) {
    const DefaultRecipeOptions options{
        .data = make_images(per_class).string(), .model = small_model(), .cross_validated = true};
    const Recipe recipe = default_recipe(options).recipe;
    EXPECT_EQ(recipe.batch_size, batch_size) << per_class;
    EXPECT_EQ(recipe.epochs, epochs) << per_class;
    EXPECT_DOUBLE_EQ(recipe.lr, 5e-4 * std::sqrt(static_cast<double>(batch_size) / 64));
    EXPECT_EQ(recipe.schedule.warmup_epochs, 1);
    EXPECT_EQ(recipe.data.holdout, 0);
    EXPECT_EQ(recipe.patience, Recipe().patience) << "nothing is held out";
    EXPECT_EQ(recipe.groups.layer_decay, 0.75);
    EXPECT_EQ(recipe.loss.label_smoothing, 0.1);
    EXPECT_EQ(recipe.clip, 1);
    EXPECT_EQ(recipe.schedule.final_lr, 1e-6);
    EXPECT_EQ(recipe.data.unreadable, data::Unreadable::replace);
    EXPECT_EQ(recipe.augment.padded_crop->padding, 4);
    EXPECT_EQ(recipe.augment.flip, data::Flip::random);
  }
}

TEST(DefaultRecipe, PatienceAndWarmUpFollowTheEpochs) {
  const std::string images = make_images().string();
  for (const auto& [epochs, warmup, patience] :
       {std::tuple{int64_t{2}, 0.2, int64_t{3}}, {7, 0.7, 3}, {8, 0.8, 4}, {30, 1.0, 15}}) {
    const Recipe recipe = default_recipe({.data = images, .model = small_model(), .epochs = epochs}).recipe;
    EXPECT_EQ(recipe.epochs, epochs);
    EXPECT_DOUBLE_EQ(recipe.schedule.warmup_epochs, warmup) << epochs;
    EXPECT_EQ(recipe.patience, patience) << epochs;
  }
  const DefaultRecipeOptions chosen{.data = images,
                                    .model = small_model(),
                                    .choose_epochs = [](const DefaultRecipe& known) { return known.training_images; }};
  EXPECT_EQ(default_recipe(chosen).recipe.epochs, 40);
}

TEST(DefaultRecipe, ANewModelHasTenTimesTheEpochsAndTwiceTheRate) {
  const Recipe recipe =
      default_recipe({.data = make_images().string(), .preset = Preset::scratch, .cross_validated = true}).recipe;
  EXPECT_EQ(recipe.epochs, 180);
  EXPECT_DOUBLE_EQ(recipe.lr, 1e-3 * std::sqrt(4.0 / 64));
  EXPECT_EQ(recipe.groups.layer_decay, Recipe().groups.layer_decay);
  EXPECT_EQ(recipe.model.positions, "sincos2d");
  EXPECT_TRUE(recipe.model.mimetic.has_value());
  EXPECT_EQ(recipe.loss.label_smoothing, 0.1);
  EXPECT_EQ(recipe.clip, 1);
}

TEST(DefaultRecipe, ProbesDoNotHoldOut) {
  const Recipe recipe =
      default_recipe({.data = make_images(2).string(), .model = small_model(), .preset = Preset::probe}).recipe;
  EXPECT_EQ(recipe.epochs, 1);
  EXPECT_EQ(recipe.batch_size, 64);
  EXPECT_EQ(recipe.data.holdout, 0);
}

// 20 of each class and a fifth at least are held out: 60 of 240 images, which are a quarter.

TEST(DefaultRecipe, ClassesOfThreeTimesTheImagesAreBalanced) {
  for (const int removed : {3, 4}) {  // three or two of six remain
    const fs::path images = make_images(6);
    for (int i = 0; i < removed; ++i) fs::remove(images / "train/red" / ("0" + std::to_string(i) + ".png"));
    const DefaultRecipe chosen =
        default_recipe({.data = images.string(), .model = small_model(), .cross_validated = true});
    EXPECT_EQ(chosen.recipe.data.balance, removed == 4);
    EXPECT_EQ(any_reason(chosen, "classes have 2 to 6 training images"), removed == 4);
  }
}

TEST(DefaultRecipe, SmallInputsArePaddedAndLargeOnesCropped) {
  const fs::path images = make_images();
  const DefaultRecipe small = default_recipe({.data = images.string(), .model = small_model()});
  EXPECT_TRUE(small.recipe.augment.padded_crop.has_value());
  EXPECT_FALSE(small.recipe.augment.random_resized_crop.has_value());
  EXPECT_EQ(small.architecture.img_size[0], 32);
}

// A model without a head, and one whose head is the projection of an embedding.
TEST(DefaultRecipe, ItsArchitectureHasTheClassesOfTheDataset) {
  const fs::path images = make_images(4);
  for (const char* name : {"timm_num_classes_0", "hf_clip_vision_projection"}) {
    const std::string model = testing::fixture(std::string("models/") + name).string();
    const DefaultRecipe chosen = default_recipe({.data = images.string(), .model = model});
    EXPECT_EQ(chosen.architecture.num_classes, 3) << name;
    EXPECT_FALSE(chosen.architecture.projection_head) << name;
  }
}

TEST(DefaultRecipe, UnequalClassesAreBalanced) {
  const fs::path images = make_images();
  EXPECT_FALSE(default_recipe({.data = images.string(), .model = small_model()}).recipe.data.balance);
  for (int i = 4; i < 20; ++i) fs::remove(images / "train/red" / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"));
  const DefaultRecipe chosen = default_recipe({.data = images.string(), .model = small_model()});
  EXPECT_TRUE(chosen.recipe.data.balance);
  EXPECT_TRUE(any_reason(chosen, "an epoch shows equally many of each"));
}

TEST(DefaultRecipe, WithoutAModelTheBundledOneIsAdapted) {
  ::setenv("VITRAIL_HOME", testing::source("").c_str(), 1);
  const DefaultRecipe chosen = default_recipe({.data = make_images().string()});
  ::unsetenv("VITRAIL_HOME");
  EXPECT_EQ(chosen.recipe.model.init, "imagenet-tiny");
  EXPECT_TRUE(any_reason(chosen, "bundled model imagenet-tiny"));
  const DefaultRecipe scratch = default_recipe({.data = make_images().string(), .preset = Preset::scratch});
  EXPECT_EQ(scratch.recipe.model.init, "");
  EXPECT_EQ(scratch.recipe.model.architecture, "cifar_vit_d192");
}

TEST(DefaultRecipe, IsValidAndLearns) {
  const fs::path run = testing::scratch_folder() / "run";
  const DefaultRecipe chosen = default_recipe({.data = make_images().string(), .model = small_model(), .epochs = 8});
  const Recipe recipe = parse_recipe(write_recipe(chosen.recipe), "default");
  const TrainingResult result = train(recipe, {.folder = run, .threads = 1});
  EXPECT_TRUE(result.test.has_value());
  EXPECT_EQ(result.test->images, 12);
  EXPECT_EQ(result.validation_images, 20);
  EXPECT_GT(result.test->scores[0].value, 0.6);  // chance: a third
}

TEST(DefaultRecipe, MissingDataAndModelsAreErrors) {
  EXPECT_THROW(default_recipe({.data = "/nowhere", .model = small_model()}), Error);
  EXPECT_THROW(default_recipe({.data = make_images().string(), .model = "/nowhere"}), Error);
}

// A model for images of this size, whose folder is the start.
std::string model_for(int64_t size, int64_t patch) {
  const fs::path folder = testing::scratch_folder() / str("model", size);
  const Recipe recipe =
      parse_recipe(str(R"({"model": {"img_size": )", size, ", \"patch_size\": ", patch,
                       R"(, "embed_dim": 8, "depth": 1, "num_heads": 1},)", R"("data": {"train": "x"}, "epochs": 1})"),
                   "r.json");
  const PreparedModel made = prepare_model(recipe.model, {"a", "b"}, 1);
  write_model(folder, models::write_model_config(made.config), made.model.named_parameters());
  return folder.string();
}

TEST(DefaultRecipe, InputsOf96PixelsAndMoreAreCropped) {
  const std::string images = make_images(2).string();
  for (const auto& [size, patch, padding] :
       {std::tuple{int64_t{7}, int64_t{7}, int64_t{1}}, {24, 8, 3}, {95, 19, 11}, {96, 32, 0}, {128, 32, 0}}) {
    const DefaultRecipe chosen =
        default_recipe({.data = images, .model = model_for(size, patch), .epochs = 2, .cross_validated = true});
    const data::AugmentOptions& augment = chosen.recipe.augment;
    EXPECT_EQ(augment.padded_crop.has_value(), size < 96) << size;
    EXPECT_EQ(augment.random_resized_crop.has_value(), size >= 96) << size;
    if (size < 96) {
      EXPECT_EQ(augment.padded_crop->padding, padding) << size;
      EXPECT_EQ(augment.padded_crop->mode, data::PaddedCrop::Mode::reflect);
      EXPECT_EQ(chosen.reasons.back(), str("padded crops and flips, for inputs of ", size, " pixels"));
    } else {
      EXPECT_EQ(augment.random_resized_crop->scale, (std::array<double, 2>{0.35, 1}));
      EXPECT_EQ(chosen.reasons.back(), "random resized crops of 35 to 100 % of an image, and flips");
    }
  }
}

TEST(DefaultRecipe, TellsEachReason) {
  const fs::path images = make_images();
  for (int i = 0; i < 14; ++i)
    fs::remove(images / "train/red" / ((i < 10 ? "0" : "") + std::to_string(i) + ".png"));  // six of twenty remain
  const std::string path = images.string(), model = small_model();
  const std::string start = "starting from " + model;
  const std::string balance = "classes have 6 to 20 training images, so that an epoch shows equally many of each";
  const std::string crops = "padded crops and flips, for inputs of 32 pixels";
  const std::string rate = "AdamW with a peak rate of 0.000125 for this batch size, ";
  DefaultRecipe chosen = default_recipe({.data = path, .model = model, .cross_validated = true});
  EXPECT_EQ(chosen.reasons,
            (std::vector<std::string>{
                start, "batch size 4, 11 steps an epoch of 46 images",
                "19 epochs, 209 steps: more passes over fewer images, all of them: cross-validation measures the last "
                "weights",
                rate + "layer decay 0.75, warm-up of 1 epoch, cosine decay, label smoothing 0.1", balance, crops}));
  fs::copy(images / "test", images / "val", fs::copy_options::recursive);
  chosen = default_recipe({.data = path, .model = model, .epochs = 5});
  EXPECT_EQ(chosen.reasons,
            (std::vector<std::string>{
                start, "batch size 4, 11 steps an epoch of 46 images",
                "5 epochs, ending after 3 without a better held-out loss",
                rate + "layer decay 0.75, warm-up of 0.5 epochs, cosine decay, label smoothing 0.1", balance, crops}));
  EXPECT_EQ(chosen.recipe.data.test, path);
  EXPECT_EQ(error_of([&] { default_recipe({.data = path, .model = model, .cross_validated = true}); }),
            path + ": expected a dataset without validation images, for cross-validation, got a split of them");
  chosen = default_recipe({.data = path, .model = model, .preset = Preset::probe});
  EXPECT_EQ(chosen.reasons,
            (std::vector<std::string>{start,
                                      "a new head by logistic regression; 5-fold cross-validation chooses its penalty, "
                                      "so no images are held out"}));
  chosen = default_recipe({.data = path, .preset = Preset::scratch, .epochs = 40});
  EXPECT_EQ(
      chosen.reasons,
      (std::vector<std::string>{
          "a new model, cifar_vit_d192 on 32 × 32 pixels; with fewer than some 10,000 images a pretrained model "
          "serves better",
          "batch size 4, 11 steps an epoch of 46 images", "40 epochs, ending after 20 without a better held-out loss",
          "AdamW with a peak rate of 0.00025 for this batch size, warm-up of 1 epoch, cosine decay, label "
          "smoothing 0.1",
          balance, crops}));
  EXPECT_EQ(chosen.recipe.schedule.final_lr, 1e-6);
  fs::remove_all(images / "val");
  chosen = default_recipe({.data = path, .model = model, .epochs = 3});
  EXPECT_EQ(chosen.validation_images, 15);
  EXPECT_EQ(chosen.reasons[1],
            "15 of 46 images are held out to choose the number of epochs; then the model is trained on all, because "
            "there are fewer than 100 images a class (--set data.retrain=false: not)");
}

TEST(DefaultRecipe, FewHeldOutImagesAreTrainedOnInTheEnd) {
  const std::string model = small_model();
  const auto retrains = [&](DefaultRecipeOptions options) {
    options.model = model;
    return default_recipe(options).recipe.data.retrain;
  };
  const fs::path few = make_images(99);
  EXPECT_TRUE(retrains({.data = few.string()}));
  EXPECT_FALSE(retrains({.data = make_images(100).string()}));
  EXPECT_FALSE(retrains({.data = few.string(), .cross_validated = true}));
  EXPECT_FALSE(retrains({.data = few.string(), .preset = Preset::probe}));
  fs::copy(few / "test", few / "val", fs::copy_options::recursive);
  EXPECT_FALSE(retrains({.data = few.string()})) << "the split val stays for validation";
}

TEST(DefaultRecipe, FewImagesStartFromALinearProbe) {
  const auto head = [](const DefaultRecipeOptions& options) { return default_recipe(options).recipe.model.head; };
  const std::string few = make_images(66).string(), model = small_model();
  EXPECT_EQ(head({.data = few, .model = model}), "probe");
  EXPECT_EQ(head({.data = few, .model = model, .cross_validated = true}), "probe");
  EXPECT_EQ(head({.data = make_images(67).string(), .model = model}), "drawn");
  EXPECT_EQ(head({.data = few, .preset = Preset::scratch}), "drawn");
}

TEST(DefaultRecipe, BatchesArePowersOfTwoFromATenthOfTheImages) {
  const std::string model = small_model();
  for (const auto& [per_class, batch] :
       {std::pair{1, int64_t{3}}, {2, 4}, {13, 4}, {26, 4}, {27, 8}, {53, 8}, {54, 16}}) {
    const Recipe recipe =
        default_recipe({.data = make_images(per_class).string(), .model = model, .cross_validated = true}).recipe;
    EXPECT_EQ(recipe.batch_size, batch) << 3 * per_class << " images";
  }
}

TEST(DefaultRecipe, WithNothingHeldOutPromisesNoEarlyEnd) {
  const fs::path images = make_images(1, 1);
  for (const char* split : {"train", "test"}) fs::remove_all(images / split / "red");
  const DefaultRecipe chosen = default_recipe({.data = images.string(), .model = small_model(), .epochs = 2});
  EXPECT_EQ(chosen.training_images, 2);
  EXPECT_EQ(chosen.validation_images, 0);
  EXPECT_TRUE(any_reason(chosen, "2 epochs, all of them: no images are held out"));
  EXPECT_FALSE(any_reason(chosen, "held-out"));
  EXPECT_FALSE(chosen.recipe.data.retrain);
}

// Images of a format that is not read.
void hide_images(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  for (const fs::path& file : files) fs::rename(file, fs::path(file).replace_extension(".heic"));
}

TEST(DefaultRecipe, TellsOnceOfASplitWithoutImages) {
  const fs::path images = make_images(3, 1);
  hide_images(images / "test");
  const std::string told =
      images.string() + ": images that can be read in the split test: none (3 files left out: 3 .heic)";
  for (const bool validated : {false, true}) {
    if (validated) fs::copy(images / "train", images / "val", fs::copy_options::recursive);
    Warnings warnings;
    const Recipe recipe = default_recipe({.data = images.string(), .model = small_model()}).recipe;
    EXPECT_EQ(recipe.data.val, validated ? images.string() : "");
    EXPECT_EQ(recipe.data.test, "");
    EXPECT_EQ(warnings.messages, std::vector<std::string>{told});
    open_sets(recipe.data, 3);
    EXPECT_EQ(warnings.messages, std::vector<std::string>{told}) << "the run does not repeat it";
  }
  Warnings warnings;
  dataset_settings(images.string());
  EXPECT_EQ(warnings.messages, std::vector<std::string>{told}) << "of a recipe with other data";
}

TEST(DefaultRecipe, LeavesNoWarningAndNoCallback) {
  const fs::path images = make_images(3);
  fs::copy_file(images / "train/red/00.png", images / "train/blue/copy.png");  // in two classes
  const Warnings warnings;
  default_recipe({.data = images.string(), .model = small_model()});
  EXPECT_TRUE(warnings.messages.empty()) << "the run itself tells it";
  warn("still heard");
  EXPECT_EQ(warnings.messages, (std::vector<std::string>{"still heard"}));
}

}  // namespace
}  // namespace vitrail::train
