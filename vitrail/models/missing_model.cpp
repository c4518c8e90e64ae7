// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/missing_model_internal.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/installed_files.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/registry.h"
#include "vitrail/models/sam/architectures.h"
#include "vitrail/models/unsupported_families_internal.h"

namespace vitrail::models {
namespace fs = std::filesystem;
namespace {

// "https://", "s3://", …: letters before "://".
bool is_url(const std::string& text) {
  const size_t scheme = text.find("://");
  return scheme != std::string::npos && scheme > 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(scheme), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+';
         });
}

std::vector<std::string> entries_beside(const fs::path& path) {
  std::vector<std::string> names;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back((path.parent_path() / entry->path().filename()).string());
  }
  return names;
}

// A name as of an architecture: no path, and no file's name.
bool is_plain_name(const std::string& given) {
  static const std::set<std::string> kExtensions{".bin",  ".ckpt", ".gguf", ".h5",  ".json",       ".npz",
                                                 ".onnx", ".pt",   ".pth",  ".tar", ".safetensors"};
  return given.find('/') == std::string::npos && !kExtensions.contains(fs::path(given).extension().string());
}

// Architectures that share words with a name: the family, the size or the patch.
std::vector<std::string> related_architectures(const std::string& given) {
  if (!is_plain_name(given)) return {};
  const std::string name = lower_case(given.substr(0, 200));
  std::vector<std::string> names = similar_architectures(name);
  std::erase_if(names, [&](const std::string& similar) { return shared_words(name, similar) == 0; });
  return names;
}

// The folders of bundled models, once each, in the order in which they are searched.
std::vector<std::string> bundled_folders() {
  std::vector<std::string> folders;
  for (const fs::path& installation : installation_folders()) {
    const std::string folder = (installation / "models").string();
    if (std::ranges::find(folders, folder) == folders.end()) folders.push_back(folder);
  }
  return folders;
}

}  // namespace

void refuse_unknown_name(const std::string& given) {
  if (!is_plain_name(given)) return;
  refuse_unsupported_family(given, "--config");
  const std::string names = join(similar_architectures(given));
  throw Error("--config", "a config.json or a registered architecture (like " + names + ")",
              "\"" + given.substr(0, 80) + "\"");
}

std::string describe_missing_model(const std::string& given) {
  if (is_url(given)) return "a URL; download the files first and give their folder";
  std::error_code error;
  if (fs::is_symlink(fs::path(given), error)) return "a link to nothing";
  if (given.find('.') != std::string::npos && find_architecture(given)) {  // "NAME.fb_in1k"
    return "nothing there; timm's weights have the name timm/" + given + " on the hub";
  }
  if (find_architecture(given)) {
    return str("nothing there; this is an architecture without weights: give the weights' file and --config ", given);
  }
  std::vector<std::string> known = entries_beside(given);
  for (const BundledModel& model : bundled_models()) known.push_back(model.name);
  for (const SamArchitecture& row : sam_architectures()) known.push_back(row.name);
  const std::string near = join(near_names(given, known));
  const bool is_unknown_name = is_plain_name(given) && near.empty();
  if (const std::string family = is_unknown_name ? describe_unsupported_family(given) : ""; !family.empty()) {
    return "nothing there; the name is of " + family + " (`vitrail models` lists what is)";
  }
  const std::string related = join(related_architectures(given));
  return "nothing there" + (is_unknown_name ? ", nor in " + join(bundled_folders()) : "") +
         (near.empty() ? "" : "; near names: " + near) +
         (related.empty() ? "" : "; architectures of such a name: " + related);
}

}  // namespace vitrail::models
