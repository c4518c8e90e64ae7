// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for a dataset of label maps.
#include <algorithm>

#include "tests/support/errors.h"
#include "tests/train/semantic_fixture.h"
#include "tests/train/training_runs.h"
#include "vitrail/train/recipe/default_recipe.h"

namespace vitrail::train {
namespace {

DefaultRecipeOptions options_for(const fs::path& maps) {
  return {.data = maps.string(), .model = testing::fixture("models/timm_token").string()};  // 32×32 pixels
}

bool has_reason(const DefaultRecipe& chosen, const std::string& part) {
  return std::ranges::any_of(chosen.reasons, [&](const std::string& reason) { return contains(reason, part); });
}

TEST(SemanticRecipe, FewImagesHaveALinearHeadOnFrozenFeatures) {
  const fs::path maps = make_maps(20, 4);
  const DefaultRecipe chosen = default_recipe(options_for(maps));
  EXPECT_EQ(chosen.recipe.objective, "semantic");
  EXPECT_FALSE(semantic_of(chosen.recipe).train_backbone);
  EXPECT_TRUE(chosen.is_frozen);
  EXPECT_EQ(chosen.training_images, 20);
  EXPECT_EQ(chosen.validation_images, 4);
  EXPECT_EQ(chosen.recipe.data.val, maps.string());
  EXPECT_EQ(chosen.recipe.lr, 0.03);
  EXPECT_EQ(chosen.recipe.epochs, 2 * 22);  // twice 40 / 20^0.2
  EXPECT_FALSE(chosen.recipe.data.retrain) << "val holds no training images";
  EXPECT_TRUE(has_reason(chosen, "3 classes: wall, lamp, hole"));
  EXPECT_TRUE(has_reason(chosen, "on frozen features, for fewer than 200 images"));
  EXPECT_TRUE(has_reason(chosen, "of image and map together"));
  EXPECT_EQ(write_recipe(parse_recipe(write_recipe(chosen.recipe), "r.json")), write_recipe(chosen.recipe));
  Recipe recipe = chosen.recipe;
  recipe.epochs = 1;
  const TrainingResult result = train_to(testing::scratch_folder() / "run", recipe);
  EXPECT_EQ(result.validation_images, 4);
}

TEST(SemanticRecipe, ManyImagesFineTuneTheFeatures) {
  DefaultRecipeOptions options = options_for(make_maps(196, 4));
  const DefaultRecipe chosen = default_recipe(options);
  EXPECT_TRUE(semantic_of(chosen.recipe).train_backbone);
  EXPECT_FALSE(chosen.is_frozen);
  EXPECT_EQ(chosen.recipe.groups.layer_decay, 0.75);
  EXPECT_DOUBLE_EQ(chosen.recipe.lr, 1.5e-3);  // 3e-3 · √(16 / 64)
  EXPECT_EQ(chosen.recipe.epochs, 14);         // 40 / 196^0.2
  EXPECT_TRUE(has_reason(chosen, "fine-tuned features, for at least 200 images"));
  options.preset = Preset::probe;
  EXPECT_FALSE(semantic_of(default_recipe(options).recipe).train_backbone);
  options.settings = {"semantic.head=dpt"};
  EXPECT_EQ(default_recipe(options).recipe.batch_size, 8);
}

// Learning rate, weight decay and layer decay follow from the head and from whether the features are frozen.
TEST(SemanticRecipe, FollowsFromGivenSettings) {
  DefaultRecipeOptions options = options_for(make_maps(20, 4));
  options.settings = {"semantic.head=dpt", "optimizer.lr=7"};
  const DefaultRecipe dpt = default_recipe(options);
  EXPECT_EQ(semantic_of(dpt.recipe).head, models::SemanticHead::dpt);
  EXPECT_EQ(dpt.recipe.lr, 0.003) << "the caller overrides it";
  EXPECT_TRUE(has_reason(dpt, "a DPT head on 4 blocks on frozen features"));
  options.settings = {"semantic.train_backbone=true", R"(semantic.classes=["a", "b", "c"])"};
  const DefaultRecipe tuned = default_recipe(options);
  EXPECT_FALSE(tuned.is_frozen);
  EXPECT_DOUBLE_EQ(tuned.recipe.lr, 7.5e-4);  // 3e-3 · √(4 / 64)
  EXPECT_EQ(tuned.recipe.groups.layer_decay, 0.75);
  EXPECT_EQ(tuned.recipe.epochs, 22);
  EXPECT_TRUE(has_reason(tuned, "3 classes: a, b, c"));
  options.settings = {"semantic.head=upernet"};
  EXPECT_TRUE(contains(error_of([&] { default_recipe(options); }), "semantic.head"));
}

// Without a split for validation, images are held out, and missed in training where there are few.
TEST(SemanticRecipe, FewImagesAreTrainedOnAgain) {
  const fs::path maps = make_maps(24, 1);
  for (const char* folder : {"images", "labels"}) {
    fs::remove_all(maps / folder / "val");
    for (const auto& entry : fs::directory_iterator(maps / folder / "train"))
      fs::rename(entry.path(), maps / folder / entry.path().filename());
    fs::remove(maps / folder / "train");
  }
  const DefaultRecipe chosen = default_recipe(options_for(maps));
  EXPECT_EQ(chosen.recipe.data.val, "");
  EXPECT_EQ(chosen.training_images + chosen.validation_images, 24);
  EXPECT_GT(chosen.validation_images, 0);
  EXPECT_TRUE(chosen.recipe.data.retrain);
  EXPECT_TRUE(has_reason(chosen, "of 24 images are held out"));
}

TEST(SemanticRecipe, RefusesWhatMapsDoNotHave) {
  DefaultRecipeOptions scratch = options_for(make_maps(2, 1)), folds = scratch, columns = scratch;
  scratch.preset = Preset::scratch;
  folds.cross_validated = true;
  columns.columns = "file=a";
  EXPECT_ERROR(error_of([&] { default_recipe(scratch); }), "--preset", "scratch");
  EXPECT_ERROR(error_of([&] { default_recipe(folds); }), "--folds", "a dataset of label maps");
  EXPECT_ERROR(error_of([&] { default_recipe(columns); }), "--columns", "a dataset of label maps");
}

}  // namespace
}  // namespace vitrail::train
