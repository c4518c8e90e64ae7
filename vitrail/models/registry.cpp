// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/registry.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/models/builtin_architectures_internal.h"
#include "vitrail/models/model_args_internal.h"

namespace vitrail::models {
namespace {

Architecture read_row(const Json& json, const std::string& file) {
  const JsonFields row(json, file);
  Architecture result{row.text("name").value(), row.text("credit").value(), {}, row.boolean("timm").value_or(true)};
  read_model_args(JsonFields(row.at("model_args"), file + ": " + result.name), result.config);
  return result;
}

// "deit_tiny_patch16_224.fb_in1k" without the tag; a file's name as it is.
std::string without_tag(const std::string& name) {
  static const std::set<std::string> extensions{"bin", "ckpt", "json", "npz", "pt", "pth", "safetensors"};
  const size_t dot = name.find('.');
  return dot == std::string::npos || extensions.contains(name.substr(dot + 1)) ? name : name.substr(0, dot);
}

struct JsonRow {
  Json json;
  std::string file;
};

// The rows of all files in their order.
const std::vector<JsonRow>& json_rows() {
  static const std::vector<JsonRow> rows = [] {
    std::vector<JsonRow> result;
    for (const EmbeddedFile& file : builtin_architectures()) {
      const std::string where = str(file.name, ".json");
      Json json = parse_json(std::string(file.text), where);
      for (Json& row : json) result.push_back({std::move(row), where});
    }
    return result;
  }();
  return rows;
}

}  // namespace

// The notes that show scratch_vit_b16 (document 004, not public) pass mlp_size = patch_size: weights made by them need
// mlp_hidden 16.
const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = [] {
    std::vector<Architecture> rows;
    for (const JsonRow& row : json_rows()) rows.push_back(read_row(row.json, row.file));
    return rows;
  }();
  return table;
}

// Reads the named row alone: all of them take longer than many a model needs for an image.
const Architecture* find_architecture(const std::string& name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, Architecture> read;  // the rows that were found; they stay where they are
  const std::string key = without_tag(name);
  const std::lock_guard lock(mutex);
  if (const auto known = read.find(key); known != read.end()) return &known->second;
  const auto has_name = [&](const JsonRow& row) { return row.json.at("name").get_ref<const std::string&>() == key; };
  const auto found = std::ranges::find_if(json_rows(), has_name);
  return found == json_rows().end() ? nullptr : &read.emplace(key, read_row(found->json, found->file)).first->second;
}

std::vector<std::string> similar_architectures(const std::string& name) {
  const std::string given = without_tag(name.substr(0, 200));   // the time is proportional to the length
  std::vector<std::tuple<size_t, size_t, std::string>> ranked;  // −shared words, edit distance, name
  for (const Architecture& row : architectures()) {
    ranked.emplace_back(SIZE_MAX - shared_words(given, row.name), edit_distance(given, row.name), row.name);
  }
  std::sort(ranked.begin(), ranked.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < 3; ++i) names.push_back(std::get<2>(ranked[i]));
  return names;
}

}  // namespace vitrail::models
