// SPDX-License-Identifier: Apache-2.0
// Overrides and comparison of recipes.
#include <algorithm>
#include <map>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/recipe/recipe_overrides_internal.h"

namespace vitrail::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxLevels = 20;  // keys in the path of a setting; recipes have four levels

// Collects the values of all fields by their paths.  An array is one value.
void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& into) {
  if (!json.is_object()) {
    into[path] = json.dump();
    return;
  }
  for (const auto& item : json.items())
    flatten(item.value(), path.empty() ? item.key() : path + "." + item.key(), into);
}

bool changes_results(const std::string& path) {
  for (const std::string& objective : objective_names()) {
    const std::vector<FieldRow> rows = rows_of(describe_recipe, Recipe{.objective = objective});
    const auto row = std::ranges::find(rows, path, &FieldRow::name);
    if (row != rows.end()) return row->changes_results;
  }
  return true;
}

}  // namespace

void apply_override(Json& json, const std::string& setting) {
  if (!is_utf8(setting)) throw Error("--set", "text in UTF-8", "\"" + escape_non_utf8(setting) + "\"");
  const size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) throw Error("--set", "key.path=value", "\"" + setting + "\"");
  const std::string path = setting.substr(0, equals), text = setting.substr(equals + 1);
  const Json value = Json::accept(text) ? models::parse_json(text, "--set " + path) : Json(text);
  Json* target = &json;
  int levels = 0;
  for (size_t begin = 0; begin <= path.size();) {
    if (++levels > kMaxLevels) throw Error("--set", str("a path of at most ", kMaxLevels, " keys"), "a longer one");
    const size_t dot = std::min(path.find('.', begin), path.size());
    const std::string key = path.substr(begin, dot - begin);
    if (key.empty()) throw Error("--set", "key.path=value", "\"" + setting + "\"");
    if (target->is_null()) *target = Json::object();
    if (!target->is_object()) {
      throw Error("--set " + setting, "an object around \"" + key + "\"", target->dump());
    }
    target = &(*target)[key];
    begin = dot + 1;
  }
  *target = value;
}

std::vector<std::string> recipe_differences(const std::string& before, const std::string& after) {
  std::map<std::string, std::string> old_values, new_values;
  flatten(models::parse_json(before, "recipe"), "", old_values);
  flatten(models::parse_json(after, "recipe"), "", new_values);
  std::set<std::string> paths;
  for (const auto& [path, value] : old_values) paths.insert(path);
  for (const auto& [path, value] : new_values) paths.insert(path);
  auto value_of = [](const std::map<std::string, std::string>& values, const std::string& path) {
    const auto found = values.find(path);
    return found == values.end() ? std::string("nothing") : found->second;
  };
  std::vector<std::string> lines;
  for (const std::string& path : paths) {
    const std::string was = value_of(old_values, path), is = value_of(new_values, path);
    if (was != is && changes_results(path)) lines.push_back(path + ": " + was + " → " + is);
  }
  return lines;
}

}  // namespace vitrail::train
