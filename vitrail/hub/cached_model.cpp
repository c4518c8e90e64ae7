// SPDX-License-Identifier: Apache-2.0
// Finds models in the cache.
#include <algorithm>
#include <string_view>

#include "vitrail/base/error.h"
#include "vitrail/hub/file_list_internal.h"
#include "vitrail/hub/hub.h"
#include "vitrail/hub/settings_internal.h"
#include "vitrail/weights/hub_layout.h"

namespace vitrail::hub {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    if (fs::is_regular_file(entry->path(), error)) names.push_back(entry->path().filename());
    error.clear();  // a link to a deleted blob is no file
  }
  return names;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// The files of a snapshot that a model is opened with; nothing if some are missing.  Offline, all that can be had are
// enough: a model without any file of its tokenizer is one for images, and a configuration may be given beside it.
std::optional<std::vector<std::string>> model_files(const fs::path& snapshot, const std::optional<FileList>& tree,
                                                    bool offline) {
  const std::vector<std::string> names = names_in(snapshot);
  const bool for_images = offline && std::ranges::none_of(names, is_tokenizer_file);
  const std::string weights = weights::choose_weights(names);
  if (weights.empty()) return std::nullopt;
  std::vector<std::string> files{weights};
  for (const std::string& name : names) {
    if (is_needed_beside_weights(name)) files.push_back(name);
  }
  // Without the hub's list, huggingface_hub or transformers has chosen the files.
  if (!tree && !offline && !has(names, "config.json") && !has(names, "open_clip_config.json")) return std::nullopt;
  for (const auto& [path, file] : tree.value_or(FileList{})) {
    if (is_needed_beside_weights(path) && !has(names, path) && !(for_images && is_tokenizer_file(path)))
      return std::nullopt;
  }
  if (!weights.ends_with(".json")) return files;
  for (const std::string& shard : weights::shard_names(snapshot / weights)) {
    if (!has(names, shard)) return std::nullopt;
    files.push_back(shard);
  }
  return files;
}

void require_size(const fs::path& path, const HubFile& file, const ModelName& name) {
  std::error_code error;
  const auto size = static_cast<int64_t>(fs::file_size(path, error));
  if (!error && size == file.size) return;
  throw Error(path.string(), str(file.size, " bytes, as the hub lists"),
              str(error ? error.message() : str(size), "; vitrail cache verify ", name.repository,
                  " --remove deletes damaged files, and vitrail pull ", to_string(name), " gets them again"));
}

}  // namespace

std::optional<fs::path> find_cached(const ModelName& name) {
  const Settings settings = settings_from_environment();
  const Layout layout(settings.cache, name.repository);
  const std::optional<std::string> commit = layout.commit_of(name.revision);
  if (!commit) return std::nullopt;
  const fs::path snapshot = layout.snapshot(*commit);
  const std::optional<FileList> tree = read_tree(layout, *commit);
  const auto files = model_files(snapshot, tree, settings.offline);
  if (!files) return std::nullopt;
  for (const std::string& file : *files) {
    if (tree && tree->contains(file)) require_size(snapshot / file, tree->at(file), name);
  }
  return snapshot;
}

fs::path fetch(const ModelName& name) {
  if (const auto folder = find_cached(name)) return *folder;
  try {
    return pull(name);
  } catch (const Error& error) {
    const std::string cache = settings_from_environment().cache.string();
    if (std::string_view(error.what()).find(cache) != std::string_view::npos) throw;
    const std::string searched = " (not in the cache " + cache + ")";
    if (const Error::Parts* parts = error.parts()) throw Error(parts->where + searched, parts->expected, parts->got);
    throw Error(to_string(name) + searched + ": " + error.what());
  }
}

}  // namespace vitrail::hub
