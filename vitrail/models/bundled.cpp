// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/bundled.h"

#include <algorithm>

#include "vitrail/base/installed_files.h"

namespace vitrail::models {
namespace fs = std::filesystem;

std::vector<BundledModel> bundled_models() {
  std::vector<BundledModel> models;
  for (const fs::path& folder : installation_folders()) {
    std::error_code unreadable;
    for (fs::directory_iterator entry(folder / "models", unreadable), end; entry != end; entry.increment(unreadable)) {
      const std::string name = entry->path().filename().string();
      const bool known =
          std::any_of(models.begin(), models.end(), [&](const auto& model) { return model.name == name; });
      if (!known && fs::exists(entry->path() / "config.json", unreadable)) models.push_back({name, entry->path()});
    }
  }
  std::sort(models.begin(), models.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return models;
}

std::optional<fs::path> find_bundled(const std::string& name) {
  for (const BundledModel& model : bundled_models()) {
    if (model.name == name) return model.folder;
  }
  return std::nullopt;
}

}  // namespace vitrail::models
