// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output_folder.h"

#include <CLI/CLI.hpp>

#include "vitrail/base/error.h"

namespace vitrail::app {

namespace fs = std::filesystem;

void create_folder(const fs::path& folder, const std::string& purpose) {
  if (folder == "-") throw CLI::ValidationError("-o", "expected a folder for " + purpose + ", got -");
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string(), "a folder for " + purpose, error.message());
}

std::string UniqueNames::name_of(const std::string& path) {
  const std::string stem = path == "-" ? "image" : fs::path(path).stem().string();
  std::string name = stem;
  for (int number = 2; !taken_.insert(name).second; ++number) name = str(stem, "-", number);
  return name;
}

}  // namespace vitrail::app
