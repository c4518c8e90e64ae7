// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"
#include "vitrail/train/objectives/pretrain/pretrain_recipe_internal.h"

namespace vitrail::train {
namespace {

const std::vector<PretrainMethodRow>& table() {
  static const std::vector<PretrainMethodRow> rows{
      {.name = "diet",
       .make = make_diet,
       .reason = "each image is a class: it improves a model from its weights alone, on up to 20,000 images"},
  };
  return rows;
}

}  // namespace

const PretrainMethodRow& pretrain_method_of(const Recipe& recipe) {
  const std::string& name = pretrain_of(recipe).method;
  const auto row = std::ranges::find(table(), name, &PretrainMethodRow::name);
  if (row == table().end()) throw Error("pretrain.method", "a name of the table", "\"" + name + "\"");
  return *row;
}

std::vector<std::string> pretrain_method_names() {
  std::vector<std::string> names;
  for (const PretrainMethodRow& row : table()) names.push_back(row.name);
  return names;
}

}  // namespace vitrail::train
