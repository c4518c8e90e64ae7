// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for images without labels.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_data_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"
#include "vitrail/train/recipe/default_recipe_internal.h"

namespace vitrail::train {
namespace {

void set_unlabelled_data(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "pretrain";
  recipe.section = with_given_settings("pretrain", PretrainRecipe{}, options);
  recipe.data.train = options.data;
  recipe.data.unreadable = data::Unreadable::replace;
  const WarningPause pause;
  const RunData data = open_unlabelled_sets(recipe.data, result.architecture.in_chans);
  result.training_images = data.train.size();
  result.validation_images = data.validation.size();
  result.reasons.push_back(str("method ", pretrain_of(recipe).method, ": ", pretrain_method_of(recipe).reason));
}

// The settings of DIET-CP for a pretrained model (arXiv 2509.06990).
void set_diet(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const int64_t images = result.training_images;
  recipe.batch_size = batch_size_for(images);
  choose_epochs(options, result);
  constexpr int64_t kEpochs = 2;  // for each epoch of classification
  if (!options.resumed && !options.epochs && !options.choose_epochs) recipe.epochs *= kEpochs;
  if (!options.resumed) {
    recipe.schedule.warmup_epochs = 0.1 * static_cast<double>(recipe.epochs);
    recipe.patience = 0;  // the last weights are those of the whole schedule
  }
  recipe.lr = 5e-5 * std::sqrt(static_cast<double>(recipe.batch_size) / 64);
  recipe.loss.label_smoothing = 0.3;
  const int64_t steps = std::max<int64_t>(1, images / recipe.batch_size);
  result.reasons.push_back(str("batch size ", recipe.batch_size, ", ", counted(steps, "step"), " an epoch of ",
                               counted(images, "image"), "; ", counted(recipe.epochs, "epoch"),
                               epochs_reason(options, recipe.epochs * steps)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr, " for the model and ",
                               pretrain_of(recipe).head_lr, " for the classifier, warm-up of a tenth, cosine decay, ",
                               "label smoothing 0.3"));
}

void set_strong_augmentation(DefaultRecipe& result) {
  data::AugmentOptions& augment = result.recipe.augment;
  augment.flip = data::Flip::random;
  augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.2, 1}};
  augment.color_jitter =
      data::ColorJitter{.brightness = 0.4, .contrast = 0.4, .saturation = 0.2, .hue = 0.1, .probability = 0.8};
  augment.grayscale = 0.2;
  result.reasons.emplace_back("random resized crops of 20 to 100 % of an image, flips, colour jitter, grey");
}

// The model with the settings of it that are given, such as another image size, and DIET's class for each image.
models::VisionTransformerConfig given_architecture(const DefaultRecipeOptions& options, Recipe recipe, int64_t images) {
  std::vector<std::string> settings = options.settings;
  std::erase_if(settings, [](const std::string& setting) { return !setting.starts_with("model."); });
  recipe.epochs = 1;
  models::VisionTransformerConfig config = architecture_of(with_overrides(recipe, options.data, settings).model);
  set_classifier(config, images);
  return config;
}

}  // namespace

DefaultRecipe pretrain_recipe(const DefaultRecipeOptions& options) {
  DefaultRecipe result;
  set_start(options, result);
  result.architecture = architecture_of(result.recipe.model);
  set_unlabelled_data(options, result);
  result.architecture = given_architecture(options, result.recipe, result.training_images);
  set_diet(options, result);
  set_strong_augmentation(result);
  return result;
}

}  // namespace vitrail::train
