// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folders with files for each image.
#include <filesystem>
#include <set>
#include <string>

namespace vitrail::app {

// Creates the folder and those above it.  Throws Error naming what it is for, and
// CLI::ValidationError (a usage error) for "-".
void create_folder(const std::filesystem::path& folder, const std::string& purpose);

// The names of images' files: that of the image without its extension, with a number if another image has it too.
class UniqueNames {
 public:
  std::string name_of(const std::string& path);  // "-": standard input

 private:
  std::set<std::string> taken_;
};

}  // namespace vitrail::app
