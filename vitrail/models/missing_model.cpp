// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/missing_model_internal.h"

#include <algorithm>
#include <filesystem>

#include "vitrail/base/error.h"
#include "vitrail/base/near_names_internal.h"
#include "vitrail/models/bundled.h"
#include "vitrail/models/registry.h"

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

}  // namespace

std::string describe_missing_model(const std::string& given) {
  if (is_url(given)) return "a URL; download the files first and give their folder";
  if (given.find('.') != std::string::npos && find_architecture(given)) {  // "NAME.fb_in1k"
    return "nothing there; timm's weights have the name timm/" + given + " on the hub";
  }
  if (find_architecture(given)) {
    return str("nothing there; this is an architecture without weights: give the weights' file and --config ", given);
  }
  std::vector<std::string> known = entries_beside(given);
  for (const BundledModel& model : bundled_models()) known.push_back(model.name);
  for (const Architecture& row : architectures()) known.push_back(row.name);
  std::string near;
  for (const std::string& name : near_names(given, known)) near += (near.empty() ? "; near names: " : ", ") + name;
  return "nothing there" + near;
}

}  // namespace vitrail::models
