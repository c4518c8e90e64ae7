// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"

#include <functional>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {
namespace {

constexpr Range kWeight{0}, kShare{0, 1};

void describe_segment(Fields& fields, SegmentRecipe& segment) {
  fields.integer("image_size", segment.image_size, 0, 1 << 14);
  fields.boolean("train_encoder", segment.train_encoder);
  fields.integer("window", segment.window, 0, 1 << 10);
  fields.integer("global_every", segment.global_every, 1, 1 << 10);
  fields.integer("decoder_dim", segment.decoder_dim, 16, 1 << 12);
  fields.integer("decoder_depth", segment.decoder_depth, 1, 64);
  fields.integer("decoder_mlp", segment.decoder_mlp, 1, 1 << 16);
  fields.integer("prompts", segment.prompts, 1, 1024);
  fields.integer("rounds", segment.rounds, 1, 32);
  fields.number("box_share", segment.box_share, kShare);
  fields.number("focal_weight", segment.focal_weight, kWeight);
  fields.number("dice_weight", segment.dice_weight, kWeight);
  fields.number("iou_weight", segment.iou_weight, kWeight);
  fields.number("focal_alpha", segment.focal_alpha, kShare);
  fields.number("focal_gamma", segment.focal_gamma, kWeight);
  fields.text(Field("cache").without_effect(), segment.cache);
}

// Settings of the classification trainer that masks have no use for.
void check_unused(const Recipe& recipe, const std::function<void(bool, const std::string&)>& require) {
  const data::AugmentOptions& augment = recipe.augment;
  const bool only_flip = !augment.random_resized_crop && !augment.padded_crop && !augment.affine &&
                         augment.policy.empty() && !augment.color_jitter && augment.grayscale == 0 && !augment.blur &&
                         !augment.solarize && augment.erasing.probability == 0 && recipe.repeats == 1 &&
                         recipe.plain_epochs == 0 && !recipe.mix.any();
  require(only_flip, "augment: expected only \"flip\" for the objective \"segment\", got others");
  require(augment.flip != data::Flip::alternate, "augment.flip: expected \"none\" or \"random\", got \"alternate\"");
  require(!recipe.token_drop, "token_drop: expected null for the objective \"segment\", got an object");
  require(recipe.loss == LossRecipe{},
          "loss: expected nothing for the objective \"segment\", whose losses are in \"segment\", got other settings");
  require(!recipe.model.linear_probe, "model.linear_probe: expected false for the objective \"segment\", got true");
  require(
      recipe.model.positions == "drawn" && recipe.model.head == "drawn" && !recipe.model.mimetic &&
          !recipe.model.activation_checkpointing,
      "model: expected neither positions, head, mimetic nor activation_checkpointing for the objective \"segment\"");
}

void check_data(const DataRecipe& data, const std::function<void(bool, const std::string&)>& require) {
  require(data.preset.empty() && data.mean.empty() && data.std.empty() && data.interpolation.empty() && !data.crop_pct,
          "data: expected no preprocessing for the objective \"segment\", which resizes the long side, got some");
  require(data.unreadable != data::Unreadable::leave_out,
          "data.unreadable: expected \"error\" or \"skip\" for the objective \"segment\", got \"leave_out\"");
  require(data.columns.empty(), "data.columns: expected none for the objective \"segment\", got some");
  require(!data.balance && data.folds == 0 && !data.retrain,
          "data: expected neither balance, folds nor retrain for the objective \"segment\", got one");
}

}  // namespace

void describe_segment_recipe(Fields& fields, Recipe& recipe) {
  describe_section("segment", fields, recipe, describe_segment);
}

std::vector<std::string> segment_splits(const std::filesystem::path& path) {
  std::vector<std::string> splits;
  std::error_code error;
  for (const char* split : {"train", "val", "test"}) {
    if (std::filesystem::is_directory(path / split, error)) splits.emplace_back(split);
  }
  return splits;
}

void check_segment_recipe(const Recipe& recipe, std::vector<std::string>& problems) {
  const auto require = [&](bool condition, const std::string& problem) {
    if (!condition) problems.push_back(problem);
  };
  check_unused(recipe, require);
  check_data(recipe.data, require);
  const bool changes_model =
      !recipe.model.architecture.empty() || (!recipe.model.model_args.empty() && recipe.model.model_args != "{}");
  require(recipe.model.init.empty() || !changes_model,
          "model: expected only init, freeze, config and key_map together with init, got an architecture");
  const SegmentRecipe& segment = segment_of(recipe);
  require(segment.focal_gamma == 0 || segment.focal_gamma >= 1,
          str("segment.focal_gamma: expected 0 or at least 1, got ", segment.focal_gamma));
  require(segment.decoder_dim % 16 == 0,
          str("segment.decoder_dim: expected a multiple of 16, which the decoder's 8 heads divide, got ",
              segment.decoder_dim));
}

}  // namespace vitrail::train
