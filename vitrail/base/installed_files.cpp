// SPDX-License-Identifier: Apache-2.0
#include "vitrail/base/installed_files.h"

#include "vitrail/base/env_internal.h"
#include "vitrail/base/installation_internal.h"

namespace vitrail {
namespace fs = std::filesystem;

std::vector<fs::path> installation_folders() {
  std::vector<fs::path> folders;
  if (const auto home = environment("VITRAIL_HOME")) folders.emplace_back(*home);
  for (const fs::path& prefix : installation_prefixes()) folders.push_back(prefix / "share" / "vitrail");
  const fs::path program = program_folder();
  if (!program.empty()) folders.push_back(program.parent_path().parent_path());  // SOURCE/build/release/vitrail
  folders.push_back(fs::path(VITRAIL_DATA_PATH) / "vitrail");
  folders.push_back("/usr/share/vitrail");  // a Debian package has a library that was built for another prefix
  return folders;
}

std::optional<fs::path> find_installed(const fs::path& path) {
  std::error_code unreadable;
  if (fs::exists(path, unreadable)) return path;
  if (path.empty() || path.is_absolute()) return std::nullopt;
  for (const fs::path& folder : installation_folders()) {
    if (fs::exists(folder / path, unreadable)) return folder / path;
  }
  return std::nullopt;
}

}  // namespace vitrail
