// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"

#include <algorithm>
#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {
namespace {

void describe_semantic(Fields& fields, SemanticRecipe& semantic) {
  using models::SemanticHead;
  fields.choice("head", semantic.head, {{"linear", SemanticHead::linear}, {"dpt", SemanticHead::dpt}});
  fields.boolean("train_backbone", semantic.train_backbone);
  fields.integers("layers", semantic.layers, {0, 1 << 10});
  fields.boolean("batch_norm", semantic.batch_norm);
  fields.integer("ignored", semantic.ignored, 0, 255);
  fields.boolean("reduce_labels", semantic.reduce_labels);
  fields.texts("classes", semantic.classes);
}

using Require = std::function<void(bool, const std::string&)>;

// Settings of the classification trainer that maps have no use for.
void check_unused_by_maps(const Recipe& recipe, const Require& require) {
  const data::AugmentOptions& augment = recipe.augment;
  const bool joint = !augment.padded_crop && !augment.affine && augment.policy.empty() && augment.grayscale == 0 &&
                     !augment.blur && !augment.solarize && augment.erasing.probability == 0 && recipe.repeats == 1 &&
                     recipe.plain_epochs == 0 && !recipe.mix.any();
  require(joint,
          "augment: expected only random_resized_crop, flip and color_jitter for the objective \"semantic\", got "
          "others");
  require(augment.flip != data::Flip::alternate, "augment.flip: expected \"none\" or \"random\", got \"alternate\"");
  require(!recipe.token_drop, "token_drop: expected null for the objective \"semantic\", got an object");
  LossRecipe plain = recipe.loss;
  plain.label_smoothing = 0;
  plain.class_weights.clear();
  require(
      plain == LossRecipe{},
      "loss: expected the cross-entropy, with label_smoothing and class_weights, for the objective \"semantic\", got "
      "another one");
  require(!recipe.model.linear_probe, "model.linear_probe: expected false for the objective \"semantic\", got true");
  require(recipe.model.head == "drawn", "model.head: expected \"drawn\" for the objective \"semantic\", got \"probe\"");
}

void check_map_data(const DataRecipe& data, const Require& require) {
  require(!data.crop_pct,
          "data.crop_pct: expected none for the objective \"semantic\", which sees whole images, got one");
  require(data.unreadable != data::Unreadable::leave_out,
          "data.unreadable: expected \"error\" or \"skip\" for the objective \"semantic\", got \"leave_out\"");
  require(data.columns.empty(), "data.columns: expected none for the objective \"semantic\", got some");
  require(!data.balance && data.folds == 0,
          "data: expected neither balance nor folds for the objective \"semantic\", got one");
}

}  // namespace

void describe_semantic_recipe(Fields& fields, Recipe& recipe) {
  describe_section("semantic", fields, recipe, describe_semantic);
}

void check_semantic_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  check_unused_by_maps(recipe, require);
  check_map_data(recipe.data, require);
  const SemanticRecipe& semantic = semantic_of(recipe);
  require(std::ranges::is_sorted(semantic.layers, std::ranges::less_equal()),
          "semantic.layers: expected different blocks in ascending order, got others");
  require(
      semantic.head != models::SemanticHead::dpt || semantic.layers.empty() || std::ssize(semantic.layers) == kDptMaps,
      str("semantic.layers: expected none or ", kDptMaps, " blocks for a dpt head, got ", semantic.layers.size()));
  require(semantic.train_backbone || !recipe.model.activation_checkpointing,
          "model.activation_checkpointing: expected false for a frozen backbone, got true");
}

}  // namespace vitrail::train
