// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/recipe/recipe_inputs.h"

#include <algorithm>
#include <array>
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

constexpr std::array<std::string_view, 3> kFetchedDatasets{"cifar10", "mnist", "textiles"};  // by scripts/get-data

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
  const auto script = find_installed("scripts/get-data");
  std::string hint;
  for (std::filesystem::path folder = path; script && folder.has_filename(); folder = folder.parent_path()) {
    const std::string name = folder.filename().string();
    if (std::ranges::count(kFetchedDatasets, name) > 0)
      hint = str("; `", script->string(), " ", name, " ", folder.string(), "` fetches it");
  }
  throw Error(path, "a dataset (a recipe takes another one with --data PATH)", "nothing at this path" + hint);
}

}  // namespace vitrail::train
