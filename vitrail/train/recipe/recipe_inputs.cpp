// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/recipe_inputs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/installed_files.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/utf8_internal.h"
#include "vitrail/models/json_fields_internal.h"
#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {
namespace {

// The text as JSON, so that a folder "2024" is not read as a number.
std::string setting(const std::string& key, const std::string& text) {
  if (!is_utf8(text)) throw Error(key, "a path in UTF-8 (rename the file)", "'" + escape_non_utf8(text) + "'");
  return key + "=" + nlohmann::json(text).dump();
}

}  // namespace

std::string recipe_objective(const std::filesystem::path& file) {
  const auto json = models::parse_json(read_text_file(find_installed(file).value_or(file)), file.string());
  const bool given = json.is_object() && json.contains("objective") && json["objective"].is_string();
  return given ? json["objective"].get<std::string>() : Recipe{}.objective;
}

std::vector<std::string> dataset_settings(const std::string& path, const std::string& objective,
                                          const std::string& columns, data::Manifests manifests) {
  const std::filesystem::path found = find_dataset(path);
  const ObjectiveRow* const row = find_objective(objective);
  const std::vector<std::string> splits =
      row && row->splits ? row->splits(found)
                         : manifests.get(found, {.columns = data::parse_columns(columns)})->splits();
  const auto path_of = [&](const char* split) {
    return std::find(splits.begin(), splits.end(), split) == splits.end() ? "" : path;
  };
  return {setting("data.train", path),
          setting("data.val", path_of("val")),
          setting("data.test", path_of("test")),
          "data.train_split=\"\"",
          "data.val_split=\"\"",
          "data.test_split=\"\"",
          "data.holdout=null"};
}

std::vector<std::string> start_settings(const std::string& model) {
  return {setting("model.init", model), "model.config=\"\"", "model.key_map=\"\""};
}

std::shared_ptr<const data::Manifest> manifest_of(const DataRecipe& recipe, const std::string& path) {
  data::Manifests manifests = recipe.manifests;
  return manifests.get(find_dataset(path), {.columns = data::parse_columns(recipe.columns)});
}

std::filesystem::path find_dataset(const std::string& path) {
  if (const auto found = find_installed(path)) return *found;
  look_up(path);  // throws if the path cannot be looked at
  const std::string name = std::filesystem::path(path).filename().string();
  const auto script = find_installed("scripts/get-data");
  const bool is_fetched = script && (name == "cifar10" || name == "mnist");
  throw Error(path, "a dataset (a recipe takes another one with --data PATH)",
              is_fetched ? str("nothing at this path; `", script->string(), " ", name, " ", path, "` fetches it")
                         : "nothing at this path");
}

}  // namespace vitrail::train
