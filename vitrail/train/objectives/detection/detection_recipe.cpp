// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_recipe_internal.h"

#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {
namespace {

void describe_detection_section(Fields& fields, DetectionRecipe& detection) {
  constexpr int64_t kMaxSide = 4096, kMaxWindows = 16, kMaxQueries = 1000, kMaxLayers = 12, kMaxWidth = 1024;
  constexpr int64_t kMaxGroups = 32;
  fields.boolean("train_backbone", detection.train_backbone);
  fields.integer("size", detection.size, 0, kMaxSide);
  fields.integer("groups", detection.groups, 1, kMaxGroups);
  fields.number("mosaic", detection.mosaic, {0, 1});
  fields.integer("windows", detection.windows, 1, kMaxWindows);
  fields.integer("queries", detection.queries, 1, kMaxQueries);
  fields.integer("layers", detection.layers, 1, kMaxLayers);
  fields.integer("width", detection.width, 16, kMaxWidth);
}

using Require = std::function<void(bool, const std::string&)>;

// Settings of the classification trainer that boxes have no use for.
void check_unused_by_boxes(const Recipe& recipe, const Require& require) {
  const data::AugmentOptions& augment = recipe.augment;
  const bool joint = !augment.padded_crop && !augment.affine && augment.policy.empty() && augment.grayscale == 0 &&
                     !augment.blur && !augment.solarize && augment.erasing.probability == 0 && recipe.repeats == 1 &&
                     recipe.plain_epochs == 0 && !recipe.mix.any();
  require(joint,
          "augment: expected only random_resized_crop, flip and color_jitter for the objective \"detect\", got others");
  require(augment.flip != data::Flip::alternate, "augment.flip: expected \"none\" or \"random\", got \"alternate\"");
  require(!recipe.token_drop, "token_drop: expected null for the objective \"detect\", got an object");
  require(recipe.loss == LossRecipe{}, "loss: expected the defaults for the objective \"detect\", got others");
  require(!recipe.model.linear_probe, "model.linear_probe: expected false for the objective \"detect\", got true");
  require(recipe.model.head == "drawn", "model.head: expected \"drawn\" for the objective \"detect\", got \"probe\"");
  require(!recipe.model.activation_checkpointing,
          "model.activation_checkpointing: expected false for the objective \"detect\", got true");
}

void check_box_data(const DataRecipe& data, const Require& require) {
  require(!data.crop_pct,
          "data.crop_pct: expected none for the objective \"detect\", which sees whole images, got one");
  require(data.unreadable != data::Unreadable::leave_out,
          "data.unreadable: expected \"error\" or \"skip\" for the objective \"detect\", got \"leave_out\"");
  require(data.columns.empty(), "data.columns: expected none for the objective \"detect\", got some");
  require(!data.balance && data.folds == 0,
          "data: expected neither balance nor folds for the objective \"detect\", got one");
}

}  // namespace

void describe_detection_recipe(Fields& fields, Recipe& recipe) {
  describe_section("detect", fields, recipe, describe_detection_section);
}

void check_detection_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  check_unused_by_boxes(recipe, require);
  check_box_data(recipe.data, require);
  constexpr int64_t kHeads = 16;
  require(detection_of(recipe).width % kHeads == 0,
          str("detect.width: expected a multiple of ", kHeads, ", got ", detection_of(recipe).width));
}

}  // namespace vitrail::train
