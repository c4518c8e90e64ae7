// SPDX-License-Identifier: Apache-2.0
#include "apps/vitrail/output/output_folder.h"

#include <CLI/CLI.hpp>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/near_names_internal.h"

namespace vitrail::app {

namespace fs = std::filesystem;

void create_folder(const fs::path& folder, const std::string& purpose) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error(folder.string(), "a folder for " + purpose, error.message());
}

void create_output_folder(const fs::path& folder, const std::string& purpose, const std::string& option) {
  const std::set<std::string> of_files{".bmp", ".csv", ".gif",     ".jpeg", ".jpg",  ".json", ".npy",
                                       ".npz", ".png", ".parquet", ".tif",  ".tiff", ".txt",  ".webp"};
  const bool is_file = of_files.contains(lower_case(folder.extension().string())) && !is_folder(folder);
  if (folder == "-" || is_file) {
    throw CLI::ValidationError(option, "expected a folder for " + purpose + ", got " + folder.string());
  }
  create_folder(folder, purpose);
}

std::string UniqueNames::name_of(const std::string& path) {
  const std::string stem = path == "-" ? "image" : fs::path(path).stem().string();
  std::string name = stem;
  for (int number = 2; !taken_.insert(name).second; ++number) name = str(stem, "-", number);
  return name;
}

}  // namespace vitrail::app
