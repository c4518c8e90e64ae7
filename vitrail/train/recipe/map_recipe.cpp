// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for images with label maps.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"
#include "vitrail/train/recipe/default_recipe_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

constexpr int64_t kFewMaps = 200;  // images with label maps, held-out ones included
constexpr double kDptCost = 0.5;   // DefaultRecipe::head_cost

// A class for each pixel.
void set_map_data(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "semantic";
  recipe.section = with_given_settings("semantic", SemanticRecipe{}, options);
  recipe.data.train = options.data;
  recipe.data.unreadable = data::Unreadable::replace;
  const std::vector<std::string> splits = semantic_splits(find_dataset(options.data));
  if (std::ranges::count(splits, "val") > 0) recipe.data.val = options.data;
  if (std::ranges::count(splits, "test") > 0) recipe.data.test = options.data;
  const WarningPause pause;
  const SemanticData data = open_semantic_data(recipe);
  result.training_images = std::ssize(data.samples);
  result.validation_images = data.validation ? data.validation->size() : 0;
  set_classifier(result.architecture = architecture_of(recipe.model), std::ssize(data.classes));
  result.reasons.push_back(str("images with label maps, ", data.classes.size(), " classes: ", join(data.classes)));
}

bool is_dpt(const DefaultRecipe& chosen) { return semantic_of(chosen.recipe).head == models::SemanticHead::dpt; }

// Frozen features leave few parameters to fit; with more images they are better fitted too.
void set_map_head(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const int64_t images = result.training_images + result.validation_images;
  const bool probe = options.preset == Preset::probe, few = images < kFewMaps;
  const SemanticRecipe section =
      with_given_settings("semantic", SemanticRecipe{.train_backbone = !probe && !few}, options);
  recipe.section = section;
  result.is_frozen = !section.train_backbone;
  if (is_dpt(result)) result.head_cost = kDptCost;
  std::string reason = is_dpt(result)       ? str("a DPT head on ", kDptMaps, " blocks")
                       : section.batch_norm ? "a linear head with batch normalisation"
                                            : "a linear head";
  reason += result.is_frozen ? " on frozen features" : ", and fine-tuned features";
  if (!probe && few && result.is_frozen)
    reason += str(", for fewer than ", kFewMaps, " images (--set semantic.train_backbone=true: fine-tuned ones)");
  if (!few && !result.is_frozen) reason += str(", for at least ", kFewMaps, " images (--preset probe: frozen ones)");
  if (!is_dpt(result)) reason += "; --set semantic.head=dpt sees finer detail, in longer steps";
  result.reasons.push_back(reason);
  if (result.is_frozen) {
    recipe.groups.weight_decay = 1e-4;
  } else {
    recipe.groups.layer_decay = 0.75;
    recipe.clip = 1;
  }
  recipe.schedule.final_lr = 1e-6;
}

// The peak learning rate.  Of rates that differ by factors of three, 3e-2 and 3e-3 gave the highest mean IoU in short
// runs on 150 images in batches of 8.  For fine-tuning it was the highest that was tried, 1.5e-3: that of batches
// of 16.
double map_rate(const DefaultRecipe& chosen) {
  if (chosen.is_frozen) return is_dpt(chosen) ? 3e-3 : 3e-2;
  return 3e-3 * std::sqrt(static_cast<double>(chosen.recipe.batch_size) / 64);
}

void set_map_duration(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const int64_t images = result.training_images;
  // A DPT head keeps the neighbourhoods of its convolutions for the backward pass.
  recipe.batch_size = std::min<int64_t>(batch_size_for(images), is_dpt(result) ? 8 : 16);
  choose_epochs(options, result);
  const int64_t steps = (images + recipe.batch_size - 1) / recipe.batch_size;
  recipe.lr = map_rate(result);
  result.reasons.push_back(
      str("batch size ", recipe.batch_size, ", ", counted(steps, "step"), " an epoch of ", counted(images, "image")));
  result.reasons.push_back(
      str(counted(recipe.epochs, "epoch"), epochs_reason(options, recipe.epochs * steps), end_text(options, result)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr, result.is_frozen ? "" : ", layer decay 0.75",
                               ", warm-up of ", counted(recipe.schedule.warmup_epochs, "epoch"), ", cosine decay"));
}

void set_map_augmentation(DefaultRecipe& result) {
  data::AugmentOptions& augment = result.recipe.augment;
  augment.flip = data::Flip::random;
  augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.35, 1}};
  augment.color_jitter = data::ColorJitter{.brightness = 0.2, .contrast = 0.2, .saturation = 0.2};
  result.reasons.push_back(
      "random resized crops of 35 to 100 % of an image and flips, of image and map together, and colour jitter");
}

// Held-out images are missed in training where there are few.
void set_map_retraining(DefaultRecipe& result) {
  const int64_t images = result.training_images + result.validation_images;
  if (!result.recipe.data.val.empty() || result.validation_images == 0 || images >= kFewMaps) return;
  result.recipe.data.retrain = true;
  result.reasons.push_back(str(result.validation_images, " of ", images,
                               " images are held out to choose the number of epochs; then the model is trained on "
                               "all, because there are fewer than ",
                               kFewMaps, " (--set data.retrain=false: not)"));
}

}  // namespace

DefaultRecipe map_recipe(const DefaultRecipeOptions& options) {
  if (options.preset == Preset::scratch)
    throw Error("--preset", "finetune or probe for a dataset of label maps", "scratch");
  if (options.cross_validated) throw Error("--folds", "class folders or a list of labels", "a dataset of label maps");
  if (!options.columns.empty()) throw Error("--columns", "a list of labels", "a dataset of label maps");
  DefaultRecipe result;
  set_start(options, result);
  set_map_data(options, result);
  set_map_head(options, result);
  set_map_retraining(result);
  set_map_duration(options, result);
  set_map_augmentation(result);
  return result;
}

}  // namespace vitrail::train
