// SPDX-License-Identifier: Apache-2.0
#include "vitrail/weights/hub_layout.h"

#include <nlohmann/json.hpp>
#include <set>

#include "vitrail/base/atomic_file.h"
#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/weights/file_lookup_internal.h"
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
fs::path shard_in(const fs::path& folder, const std::string& name, const fs::path& index) {
  const fs::path shard = name;
  if (name.empty() || name == "." || name == ".." || shard.filename() != shard ||
      name.find('\0') != std::string::npos) {
    throw Error(index.string(), "file names in \"weight_map\"", "\"" + name.substr(0, 80) + "\"");
  }
  if (!is_present(folder / shard)) throw Error(index.string(), "the shard " + name + " in the same folder", "none");
  return folder / shard;
}

}  // namespace

// Only the file names are used; each file lists its tensors.
std::vector<fs::path> shards_of(const fs::path& index) {
  const auto shallow = [&](int depth, json::parse_event_t, json&) {
    if (depth > kMaxIndexDepth) throw Error(index.string(), "an index of shards", "JSON that is nested deeper");
    return true;
  };
  const json parsed = json::parse(read_text_file(index, kMaxIndexBytes), shallow, false);
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
  std::vector<fs::path> shards;
  for (const std::string& name : names) shards.push_back(shard_in(index.parent_path(), name, index));
  return shards;
}

namespace {

std::optional<fs::path> if_exists(const fs::path& path) {
  return is_present(path) ? std::optional(path) : std::nullopt;
}

// The *.safetensors of any name.
std::vector<fs::path> safetensors_in(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (entry->path().extension() == ".safetensors") found.push_back(entry->path());
  }
  return found;
}

}  // namespace

HubFiles find_hub_files(const fs::path& folder) {
  if (const PathKind kind = look_up(folder); kind != PathKind::folder) {
    throw Error(folder.string(), "a folder with config.json and model.safetensors",
                kind == PathKind::missing ? "nothing at this path" : "a file");
  }
  HubFiles files{folder, if_exists(folder / "config.json"), if_exists(folder / "preprocessor_config.json"), {}};
  for (const char* name : kWeightFiles) {
    const fs::path path = folder / name;
    if (!is_present(path)) continue;
    files.weights = path.extension() == ".json" ? shards_of(path) : std::vector{path};
    return files;
  }
  if (const std::vector<fs::path> others = safetensors_in(folder); others.size() == 1) {
    files.weights = others;
    return files;
  }
  throw Error(folder.string(), "model.safetensors, its index, or pytorch_model.bin in the folder",
              folder_content(folder));
}

void write_hub_folder(const fs::path& folder, const std::string& config_json,
                      const std::vector<std::pair<std::string, Tensor>>& tensors,
                      const std::string& preprocessor_json) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(str(folder.string(), ": cannot be created: ", error.message()));
  const fs::path path = folder / "model.safetensors";
  AtomicFile weights(path), config(folder / "config.json");
  write_safetensors(weights, tensors, {{"format", "pt"}}, path);  // transformers requires the format
  config.write(config_json);
  if (preprocessor_json.empty()) return AtomicFile::commit_together({&weights, &config});
  AtomicFile preprocessor(folder / "preprocessor_config.json");
  preprocessor.write(preprocessor_json);
  AtomicFile::commit_together({&weights, &config, &preprocessor});
}

}  // namespace vitrail::weights
