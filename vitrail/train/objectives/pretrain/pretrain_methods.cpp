// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/pretrain/pretrain_method_internal.h"

namespace vitrail::train {
namespace {

const std::vector<PretrainMethodRow>& table() {
  static const std::vector<PretrainMethodRow> rows{diet_method(), lejepa_method(), mae_method(), distill_method(),
                                                   dino_method()};
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

std::string default_pretrain_method(int64_t images, bool scratch, bool teacher) {
  if (teacher) return "distill";
  if (scratch) return "mae";
  return images <= kMaxDietImages ? "diet" : "lejepa";
}

}  // namespace vitrail::train
