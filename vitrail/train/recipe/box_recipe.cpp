// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for images with boxes.
#include <algorithm>
#include <cmath>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/models/rf_detr/rf_detr.h"
#include "vitrail/train/objectives/classification/model_setup_internal.h"
#include "vitrail/train/objectives/detection/detection_data_internal.h"
#include "vitrail/train/objectives/detection/detection_model_internal.h"
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"
#include "vitrail/train/recipe/default_recipe_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

constexpr int64_t kMaxBatch = 16;
constexpr int64_t kBoxEpochs = 3;      // for each epoch of classification: queries learn where to look
constexpr double kDetectorCost = 1.5;  // DefaultRecipe::head_cost: the larger input, the projector and the decoder

bool starts_from_detector(const Recipe& recipe) {
  return !recipe.model.init.empty() && models::is_rf_detr(models::ModelFiles(recipe.model.init));
}

void set_box_data(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "detect";
  recipe.section =
      with_given_settings("detect", DetectionRecipe{.train_backbone = options.preset != Preset::probe}, options);
  recipe.data.train = options.data;
  recipe.data.unreadable = data::Unreadable::replace;
  const std::vector<std::string> splits = object_splits(find_dataset(options.data));
  if (std::ranges::count(splits, "val") > 0) recipe.data.val = options.data;
  if (std::ranges::count(splits, "test") > 0) recipe.data.test = options.data;
  const WarningPause pause;
  const ObjectData data = open_object_data(recipe.data);
  result.training_images = std::ssize(data.samples);
  result.validation_images = data.validation ? data.validation->size() : 0;
  result.reasons.push_back(str("images with boxes, ", data.classes.size(), " classes: ", join(data.classes)));
}

// At most as many queries as the input has patches, unless their number is given.
void set_new_detector(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  DetectionRecipe section = detection_of(recipe);
  const int64_t patch = (result.architecture = architecture_of(recipe.model)).patch_size[0];
  const int64_t patches = new_detector_side(section, patch) / patch;
  section.queries = std::clamp<int64_t>(patches * patches, 1, section.queries);
  recipe.section = section = with_given_settings("detect", section, options);
  const char* const number = section.queries == patches * patches ? ", one for each patch of the input," : "";
  result.reasons.push_back(str("RF-DETR's projector and decoder, new: ", section.queries, " queries", number, " in ",
                               section.groups, " groups, ", section.layers,
                               " layers (--set detect.queries, .groups, .layers)"));
}

void set_detector(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  result.is_frozen = !detection_of(recipe).train_backbone;
  if (starts_from_detector(recipe)) {
    result.reasons.emplace_back("an RF-DETR with the classes of the dataset");
  } else {
    set_new_detector(options, result);
  }
  result.head_cost = kDetectorCost;
  recipe.groups.weight_decay = 1e-4;
  recipe.groups.layer_decay = 0.8;
  recipe.clip = 0.1;
  recipe.schedule.final_lr = 1e-6;
  recipe.ema = optim::EmaOptions{.decay = 0.99, .warmup = true};
  result.reasons.emplace_back("averaged weights (EMA), and gradients of norm 0.1 at most");
}

void set_box_duration(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const int64_t images = result.training_images;
  recipe.batch_size = std::min(batch_size_for(images), kMaxBatch);
  choose_epochs(options, result);
  if (!options.resumed && !options.epochs && !options.choose_epochs) {
    recipe.epochs *= kBoxEpochs;
    recipe.patience *= kBoxEpochs;
  }
  const int64_t steps = (images + recipe.batch_size - 1) / recipe.batch_size;
  recipe.lr = 4e-4 * std::sqrt(static_cast<double>(recipe.batch_size) / static_cast<double>(kMaxBatch));
  result.reasons.push_back(
      str("batch size ", recipe.batch_size, ", ", counted(steps, "step"), " an epoch of ", counted(images, "image")));
  result.reasons.push_back(
      str(counted(recipe.epochs, "epoch"), epochs_reason(options, recipe.epochs * steps), end_text(options, result)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr, ", layer decay 0.8, warm-up of ",
                               counted(recipe.schedule.warmup_epochs, "epoch"), ", cosine decay"));
}

void set_box_augmentation(DefaultRecipe& result) {
  data::AugmentOptions& augment = result.recipe.augment;
  augment.flip = data::Flip::random;
  augment.random_resized_crop = data::RandomResizedCrop{.scale = {0.35, 1}};
  augment.color_jitter = data::ColorJitter{.brightness = 0.2, .contrast = 0.2, .saturation = 0.2};
  result.reasons.emplace_back(
      "random resized crops of 35 to 100 % of an image and flips, which move the boxes, and colour jitter "
      "(--set augment.flip=none for characters; --set detect.mosaic=0.5 for images of four)");
}

}  // namespace

DefaultRecipe box_recipe(const DefaultRecipeOptions& options) {
  if (options.preset == Preset::scratch) throw Error("--preset", "finetune or probe for a dataset of boxes", "scratch");
  if (options.cross_validated) throw Error("--folds", "class folders or a list of labels", "a dataset of boxes");
  if (!options.columns.empty()) throw Error("--columns", "a list of labels", "a dataset of boxes");
  DefaultRecipe result;
  set_start(options, result);
  set_box_data(options, result);
  set_detector(options, result);
  set_box_duration(options, result);
  set_box_augmentation(result);
  return result;
}

}  // namespace vitrail::train
