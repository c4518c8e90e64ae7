// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/contrastive/contrastive_recipe_internal.h"

#include <functional>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {
namespace {

using Require = std::function<void(bool, const std::string&)>;

void describe_contrastive(Fields& fields, ContrastiveRecipe& contrastive) {
  fields.choice("towers", contrastive.towers, {"both", "image"});
  fields.choice("loss", contrastive.loss, {"", "softmax", "sigmoid"});
  fields.number("alpha", contrastive.alpha, {0, 1});
  fields.text("zero_shot", contrastive.zero_shot);
  fields.texts("templates", contrastive.templates);
}

// The saved model has the form of the one that training starts from.
void check_dual_model(const ModelRecipe& model, const Require& require) {
  require(!model.init.empty(),
          "model.init: expected a dual model (CLIP, SigLIP) for the objective \"contrastive\", got none");
  const bool own =
      model.architecture.empty() && nlohmann::json::parse(model.model_args.empty() ? "{}" : model.model_args).empty();
  require(own && model.config.empty() && model.key_map.empty() && model.adapter.empty(),
          "model: expected init, freeze and activation_checkpointing alone for the objective \"contrastive\", got "
          "others");
  require(!model.linear_probe && model.head == "drawn",
          "model: expected neither linear_probe nor head for the objective \"contrastive\", got one");
}

void check_pair_data(const DataRecipe& data, const Require& require) {
  const bool splits = !data.train_split.empty() || !data.val_split.empty() || !data.test_split.empty();
  require(!splits, "data: expected no names of splits for the objective \"contrastive\", got one");
  const bool own =
      data.preset.empty() && data.mean.empty() && data.std.empty() && data.interpolation.empty() && !data.crop_pct;
  require(own, "data: expected the model's own preprocessing for the objective \"contrastive\", got another one");
  require(data.unreadable != data::Unreadable::leave_out,
          "data.unreadable: expected \"error\" or \"skip\" for the objective \"contrastive\", got \"leave_out\"");
  require(!data.balance && data.folds == 0 && !data.retrain,
          "data: expected neither balance nor folds nor retrain for the objective \"contrastive\", got one");
}

// Settings of the classification trainer that pairs have no use for.
void check_unused_by_pairs(const Recipe& recipe, const Require& require) {
  require(recipe.loss == LossRecipe{},
          "loss: expected the defaults for the objective \"contrastive\" (contrastive.loss has its own), got others");
  require(!recipe.mix.any(), "mix: expected none for the objective \"contrastive\", got mixup or cutmix");
  require(!recipe.token_drop, "token_drop: expected null for the objective \"contrastive\", got an object");
  require(recipe.repeats == 1,
          "augment.repeats: expected 1 for the objective \"contrastive\", whose batches have an image once, got more");
}

}  // namespace

void describe_contrastive_recipe(Fields& fields, Recipe& recipe) {
  describe_section("contrastive", fields, recipe, describe_contrastive);
}

void check_contrastive_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  check_dual_model(recipe.model, require);
  check_pair_data(recipe.data, require);
  check_unused_by_pairs(recipe, require);
  const ContrastiveRecipe& contrastive = contrastive_of(recipe);
  require(!contrastive.templates.empty(), "contrastive.templates: expected at least one, got none");
}

void refuse_contrastive_risks(const Recipe& recipe, int processes) {
  if (recipe.lr > kMaxDualRate)
    throw Error("optimizer.lr",
                str("at most ", kMaxDualRate, ", because a higher rate destroys pretrained towers (--force takes it)"),
                str(recipe.lr));
  if (const int64_t batch = recipe.batch_size * processes; batch < kMinDualBatch)
    throw Error("batch_size",
                str("at least ", kMinDualBatch, " pairs, which are each other's negatives (--force takes fewer)"),
                str(batch));
}

}  // namespace vitrail::train
