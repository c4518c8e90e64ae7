// SPDX-License-Identifier: Apache-2.0
// The recipe that is chosen for images without labels.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

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

bool is_new(const DefaultRecipeOptions& options) { return options.preset == Preset::scratch; }

void set_model(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  if (!is_new(options)) return set_start(options, result);
  result.recipe.model.architecture = "cifar_vit_d192";
  result.recipe.model.model_args = R"({"class_token": false, "global_pool": "avg"})";
  result.reasons.emplace_back(
      "a new model, cifar_vit_d192 on 32 × 32 pixels; with fewer than some 10,000 images it learns more from -m MODEL");
}

void set_unlabelled_data(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  recipe.objective = "pretrain";
  recipe.section = PretrainRecipe{};
  recipe.data.train = options.data;
  recipe.data.unreadable = data::Unreadable::replace;
  const WarningPause pause;
  const RunData data = open_unlabelled_sets(recipe.data, result.architecture.in_chans);
  result.training_images = data.train.size();
  result.validation_images = data.validation.size();
}

// The model with the settings of it that are given, such as another image size.
models::VisionTransformerConfig given_architecture(const DefaultRecipeOptions& options, Recipe recipe) {
  std::vector<std::string> settings = options.settings;
  std::erase_if(settings, [](const std::string& setting) { return !setting.starts_with("model."); });
  recipe.epochs = 1;
  return architecture_of(with_overrides(recipe, options.data, settings).model);
}

const PretrainMethodRow& set_method(const DefaultRecipeOptions& options, DefaultRecipe& result) {
  const bool teacher = !given_setting(options, "pretrain.teacher").empty();
  PretrainRecipe pretrain{.method = given_setting(options, "pretrain.method")};
  if (pretrain.method.empty())
    pretrain.method = default_pretrain_method(result.training_images, is_new(options), teacher);
  Recipe& recipe = result.recipe;
  recipe.section = pretrain;
  const PretrainMethodRow& method = pretrain_method_of(recipe);
  if (method.choose) method.choose(pretrain, result.architecture.img_size[0]);
  recipe.section = with_given_settings("pretrain", pretrain, options);
  if (method.norm_before_pooling && result.architecture.global_pool == models::GlobalPool::avg) {
    auto args = nlohmann::json::parse(recipe.model.model_args.empty() ? "{}" : recipe.model.model_args);
    args["fc_norm"] = false;
    recipe.model.model_args = args.dump();
  }
  result.reasons.push_back(str("method ", method.name, ": ", method.reason));
  return method;
}

void set_duration(const DefaultRecipeOptions& options, const PretrainMethodRow& method, DefaultRecipe& result) {
  Recipe& recipe = result.recipe;
  const PretrainDefaults& defaults = method.defaults;
  const int64_t images = result.training_images;
  recipe.batch_size = batch_size_for(images, defaults.max_batch);
  if (method.cost) result.head_cost = method.cost(pretrain_of(recipe)) - 1;
  choose_epochs(options, result);
  if (!options.resumed) {
    const double factor = is_new(options) ? defaults.scratch_epochs / 10 : defaults.epochs;
    if (!options.epochs && !options.choose_epochs)
      recipe.epochs = std::llround(factor * static_cast<double>(recipe.epochs));
    recipe.schedule.warmup_epochs = 0.1 * static_cast<double>(recipe.epochs);
    recipe.patience = 0;  // the schedule ends low
  }
  recipe.lr = (is_new(options) ? defaults.scratch_lr : defaults.lr * lora_rate(options)) *
              std::sqrt(static_cast<double>(recipe.batch_size) / 64);
  recipe.schedule.final_lr = defaults.final_lr * recipe.lr;
  recipe.optimizer.beta2 = defaults.beta2;
  recipe.loss.label_smoothing = defaults.label_smoothing;
  recipe.groups.weight_decay = defaults.weight_decay;
  recipe.schedule.final_weight_decay = defaults.final_weight_decay;
  recipe.clip = defaults.clip;
  recipe.clip_per_tensor = defaults.clip_per_tensor;
  recipe.augment = defaults.augment;
  const int64_t steps = std::max<int64_t>(1, images / recipe.batch_size);
  result.reasons.push_back(str("batch size ", recipe.batch_size, ", ", counted(steps, "step"), " an epoch of ",
                               counted(images, "image"), "; ", counted(recipe.epochs, "epoch"),
                               epochs_reason(options, recipe.epochs * steps)));
  result.reasons.push_back(str("AdamW with a peak rate of ", recipe.lr, " for the model and ",
                               pretrain_of(recipe).head_lr, " for the layers behind it, ", lora_reason(options),
                               "warm-up of a tenth, cosine decay"));
}

}  // namespace

DefaultRecipe pretrain_recipe(const DefaultRecipeOptions& options) {
  DefaultRecipe result;
  set_model(options, result);
  result.architecture = architecture_of(result.recipe.model);
  set_unlabelled_data(options, result);
  result.architecture = given_architecture(options, result.recipe);
  const PretrainMethodRow& method = set_method(options, result);
  if (method.smooths_labels) set_classifier(result.architecture, result.training_images);
  set_duration(options, method, result);
  return result;
}

}  // namespace vitrail::train
