// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/hub_layout.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/json_checks_internal.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/foreign_formats_internal.h"
#include "vitrail/weights/safetensors.h"

namespace vitrail::weights {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

// Far above published indices.
constexpr size_t kMaxIndexBytes = 16 << 20;
constexpr int kMaxIndexDepth = 8;

constexpr const char* kWeightFiles[] = {"model.safetensors",
                                        "model.safetensors.index.json",
                                        "pytorch_model.bin",
                                        "pytorch_model.bin.index.json",
                                        "model.pth",
                                        "model.pt",
                                        "model.npz",
                                        "open_clip_model.safetensors",
                                        "open_clip_pytorch_model.bin"};

// A shard's name must be a plain file name, so that an index cannot refer to files outside its folder.
void require_plain(const std::string& name, const fs::path& index) {
  if (!name.empty() && name != "." && name != ".." && fs::path(name).filename() == name &&
      name.find('\0') == std::string::npos)
    return;
  throw Error(index.string(), "file names in \"weight_map\"", "\"" + name.substr(0, 80) + "\"");
}

// The names of weight files in a folder.  Others than the known ones are *.safetensors.
std::vector<std::string> weight_names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const char* name : kWeightFiles) {
    if (is_present(folder / name)) names.emplace_back(name);
  }
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") names.push_back(entry->path().filename());
  }
  return names;
}

}  // namespace

// Only the file names are used; each file lists its tensors.
std::vector<std::string> shard_names(const fs::path& index) {
  const std::string text = read_regular_text_file(index, kMaxIndexBytes);
  if (json_depth(text) > kMaxIndexDepth) {
    throw Error(index.string(), "an index of shards", "JSON that is nested deeper");
  }
  const json parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object() || !parsed.contains("weight_map") || !parsed["weight_map"].is_object()) {
    throw Error(index.string(), "a JSON object with \"weight_map\"",
                parsed.is_discarded() ? "invalid JSON" : "another value");
  }
  std::set<std::string> names;
  for (const auto& [tensor, file] : parsed["weight_map"].items()) {
    if (!file.is_string()) throw Error(index.string(), "file names in \"weight_map\"", file.type_name());
    names.insert(file.get<std::string>());
  }
  if (names.empty()) throw Error(index.string(), "at least one shard", "none");
  for (const std::string& name : names) require_plain(name, index);
  return {names.begin(), names.end()};
}

std::vector<fs::path> shards_of(const fs::path& index) {
  std::vector<fs::path> shards;
  for (const std::string& name : shard_names(index)) {
    const fs::path shard = index.parent_path() / name;
    if (!is_present(shard)) throw Error(index.string(), "the shard " + name + " in the same folder", "none");
    shards.push_back(shard);
  }
  return shards;
}

std::string choose_weights(const std::vector<std::string>& names) {
  for (const char* name : kWeightFiles) {
    if (std::ranges::find(names, name) != names.end()) return name;
  }
  const auto is_safetensors = [](const std::string& name) { return name.ends_with(".safetensors"); };
  if (std::ranges::count_if(names, is_safetensors) != 1) return "";
  return *std::ranges::find_if(names, is_safetensors);
}

std::vector<fs::path> find_hub_weights(const fs::path& folder) {
  if (const PathKind kind = look_up(folder); kind != PathKind::folder) {
    throw Error(folder.string(), "a folder with config.json and model.safetensors",
                kind == PathKind::missing ? "nothing at this path" : "a file");
  }
  const std::string weights = choose_weights(weight_names_in(folder));
  if (weights.empty()) {
    throw Error(folder.string(), "model.safetensors, its index, or pytorch_model.bin in the folder",
                folder_content(folder));
  }
  return weights.ends_with(".json") ? shards_of(folder / weights) : std::vector{folder / weights};
}

namespace {

void write_files(const fs::path& folder, const std::string& config_json,
                 const std::vector<std::pair<std::string, Tensor>>& tensors, const std::string& preprocessor_json) {
  const fs::path path = folder / "model.safetensors";
  AtomicFile weights(path), config(folder / "config.json");
  write_safetensors(weights, tensors, {{"format", "pt"}}, path);  // transformers requires the format
  config.write(config_json);
  if (preprocessor_json.empty()) return AtomicFile::commit_together({&weights, &config});
  AtomicFile preprocessor(folder / "preprocessor_config.json");
  preprocessor.write(preprocessor_json);
  AtomicFile::commit_together({&weights, &config, &preprocessor});
}

}  // namespace

void check_no_other_processor(const fs::path& folder, const std::vector<std::string>& written) {
  for (const char* name : {"processor_config.json", "preprocessor_config.json"}) {
    if (std::ranges::find(written, name) != written.end() || !is_present(folder / name)) continue;
    throw Error((folder / name).string(), "no image processor of another model in the output folder",
                "one that would be used with the new weights: remove the file, or give another folder");
  }
}

void write_hub_folder(const fs::path& folder, const std::string& config_json,
                      const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::string& preprocessor_json) {
  std::error_code error;
  const bool created = fs::create_directories(folder, error);
  if (error) throw Error(str(folder.string(), ": cannot be created: ", error.message()));
  try {
    write_files(folder, config_json, tensors, preprocessor_json);
  } catch (...) {
    if (created) fs::remove(folder, error);  // it is empty
    throw;
  }
}

}  // namespace vitrail::weights
