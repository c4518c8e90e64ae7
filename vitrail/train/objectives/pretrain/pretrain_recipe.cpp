// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"

#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

using Require = std::function<void(bool, const std::string&)>;

void describe_pretrain_section(Fields& fields, PretrainRecipe& pretrain) {
  fields.choice("method", pretrain.method, pretrain_method_names());
  fields.text("probe", pretrain.probe);
  fields.number("head_lr", pretrain.head_lr, {0, 10});
}

// Settings of the classification trainer that images without labels have no use for.
void check_unused_without_labels(const Recipe& recipe, const Require& require) {
  LossRecipe plain = recipe.loss;
  plain.label_smoothing = 0;
  require(plain == LossRecipe{},
          "loss: expected the defaults, or another label_smoothing, for the objective \"pretrain\", got others");
  require(!recipe.mix.any(), "mix: expected none for the objective \"pretrain\", got mixup or cutmix");
  require(!recipe.model.linear_probe, "model.linear_probe: expected false for the objective \"pretrain\", got true");
  require(recipe.model.head == "drawn", "model.head: expected \"drawn\" for the objective \"pretrain\", got \"probe\"");
}

void check_unlabelled_data(const DataRecipe& data, const Require& require) {
  const bool splits = !data.train_split.empty() || !data.val_split.empty() || !data.test_split.empty();
  require(data.val.empty() && data.test.empty() && !splits,
          "data: expected neither val nor test nor splits for the objective \"pretrain\" (pretrain.probe is a labelled "
          "dataset), got one");
  require(data.columns.empty(), "data.columns: expected none for the objective \"pretrain\", got some");
  require(!data.balance && data.folds == 0 && !data.retrain,
          "data: expected neither balance nor folds nor retrain for the objective \"pretrain\", got one");
}

}  // namespace

void describe_pretrain_recipe(Fields& fields, Recipe& recipe) {
  describe_section("pretrain", fields, recipe, describe_pretrain_section);
}

void check_pretrain_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  check_unused_without_labels(recipe, require);
  check_unlabelled_data(recipe.data, require);
}

}  // namespace vitrail::train
