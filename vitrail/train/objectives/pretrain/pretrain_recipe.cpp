// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/fields_json_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

using Require = std::function<void(bool, const std::string&)>;

void describe_pretrain_section(Fields& fields, PretrainRecipe& pretrain) {
  constexpr int64_t kMaxViews = 64, kMaxSide = 4096, kMaxDim = 1 << 16, kMaxDepth = 64, kMaxFixedViews = 1000;
  fields.choice("method", pretrain.method, pretrain_method_names());
  fields.text("probe", pretrain.probe);
  fields.number("head_lr", pretrain.head_lr, {0, 10});
  fields.choice("keep", pretrain.keep, {"best", "last"});
  fields.integer("global_views", pretrain.global_views, 2, kMaxViews);
  fields.pair("global_scale", pretrain.global_scale, {1e-6, 1});
  fields.integer("local_views", pretrain.local_views, 0, kMaxViews);
  fields.pair("local_scale", pretrain.local_scale, {1e-6, 1});
  fields.integer("local_size", pretrain.local_size, 0, kMaxSide);
  fields.integer("projector_dim", pretrain.projector_dim, 1, kMaxDim);
  fields.choice("regularizer", pretrain.regularizer, {"sigreg", "visreg"});
  fields.number("lambda", pretrain.lambda, {0, 1});
  fields.integer("directions", pretrain.directions, 1, kMaxDim);
  fields.integer("projection_dim", pretrain.projection_dim, 1, kMaxDim);
  fields.number("mask_ratio", pretrain.mask_ratio, {1e-6, 1 - 1e-6});
  fields.boolean("norm_pix", pretrain.norm_pix);
  fields.integer("decoder_dim", pretrain.decoder_dim, 0, kMaxDim);
  fields.integer("decoder_depth", pretrain.decoder_depth, 0, kMaxDepth);
  fields.text("teacher", pretrain.teacher);
  fields.integer("views", pretrain.views, 0, kMaxFixedViews);
  fields.integer("prototypes", pretrain.prototypes, 2, 1 << 20);
  fields.number("momentum", pretrain.momentum, {0, 1});
  fields.number("teacher_temperature", pretrain.teacher_temperature, {1e-4, 100});
}

nlohmann::ordered_json json_of(PretrainRecipe pretrain) {
  JsonFieldWriter writer;
  describe_pretrain_section(writer, pretrain);
  return writer.json();
}

// Fields that the method does not read must have their defaults.
void check_fields(const PretrainRecipe& pretrain, const PretrainMethodRow& method, const Require& require) {
  static const std::vector<std::string> kOfAll{"method", "probe", "head_lr", "keep"};
  const nlohmann::ordered_json defaults = json_of({}), given = json_of(pretrain);
  for (const auto& [name, value] : given.items()) {
    const bool is_read = std::ranges::count(kOfAll, name) > 0 || std::ranges::count(method.fields, name) > 0;
    require(is_read || value == defaults.at(name),
            str("pretrain.", name, ": expected the default ", defaults.at(name).dump(), " for the method \"",
                method.name, "\", which does not use it, got ", value.dump()));
  }
}

// Settings of the classification trainer that images without labels have no use for.
void check_unused_without_labels(const Recipe& recipe, const PretrainMethodRow& method, const Require& require) {
  LossRecipe plain = recipe.loss;
  if (method.smooths_labels) plain.label_smoothing = 0;
  require(plain == LossRecipe{},
          str("loss: expected the defaults", method.smooths_labels ? ", or another label_smoothing," : "",
              " for the method \"", method.name, "\", got others"));
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
  require(data.unreadable != data::Unreadable::leave_out,
          "data.unreadable: expected \"error\" or \"skip\" for the objective \"pretrain\", got \"leave_out\"");
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
  const PretrainMethodRow& method = pretrain_method_of(recipe);
  check_fields(pretrain_of(recipe), method, require);
  check_unused_without_labels(recipe, method, require);
  check_unlabelled_data(recipe.data, require);
}

}  // namespace vitrail::train
