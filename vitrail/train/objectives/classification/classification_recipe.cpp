// SPDX-License-Identifier: Apache-2.0
// What the recipe of a classifier must say.
#include "vitrail/base/error.h"
#include "vitrail/train/objectives/classification/classification_internal.h"

namespace vitrail::train {
namespace {

void check_class_weights(const Recipe& recipe, std::vector<std::string>& problems) {
  const LossRecipe& loss = recipe.loss;
  const bool given = !loss.class_weights.empty(), weighted = given || loss.class_weighting != "none";
  const char* const field = given ? "loss.class_weights" : "loss.class_weighting";
  if (given && loss.class_weighting != "none")
    problems.push_back("loss.class_weighting: expected \"none\" together with class_weights, got another one");
  if (!weighted) return;
  if (loss.name != "cross_entropy")
    problems.push_back(str(field, ": expected loss.name \"cross_entropy\", got \"", loss.name, "\""));
  if (loss.distillation) problems.push_back(str(field, ": expected no distillation, got a teacher"));
  if (recipe.data.balance)
    problems.push_back(str(field, ": expected data.balance false, which weights the classes too, got true"));
}

void check_distillation(const Recipe& recipe, const DistillationRecipe& distillation,
                        const std::function<void(bool, const std::string&)>& require) {
  require(!distillation.teacher.empty(), "loss.distillation.teacher: expected a model, got nothing");
  require(distillation.views == 0 || (recipe.repeats == 1 && recipe.data.unreadable != data::Unreadable::replace),
          "loss.distillation.views: expected augment.repeats 1 and data.unreadable not \"skip\", because a view must "
          "always show the same image, got other settings");
  require(!distillation.view_epochs || (distillation.views > 0 && !recipe.mix.any()),
          "loss.distillation.view_epochs: expected views above 0 and neither mixup nor cutmix, got other settings");
  require(!recipe.data.balance || distillation.views == 0,
          "data.balance: expected false together with loss.distillation.views, because an image may be shown several "
          "times, got true");
}

}  // namespace

void check_classifier_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  require(!recipe.augment.padded_crop || !recipe.augment.random_resized_crop,
          "augment: expected one of padded_crop and random_resized_crop, got both");
  require(!recipe.model.linear_probe || !recipe.model.init.empty(),
          "model.linear_probe: expected a model to start from in model.init or after -m, got none");
  require(recipe.model.head == "drawn" || !recipe.model.init.empty(),
          "model.head: expected a model to start from in model.init or after -m, got none");
  if (recipe.loss.distillation) check_distillation(recipe, *recipe.loss.distillation, require);
  check_class_weights(recipe, problems);
}

}  // namespace vitrail::train
