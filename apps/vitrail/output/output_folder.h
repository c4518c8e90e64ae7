// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folders with files for each image.
#include <filesystem>
#include <set>
#include <string>

namespace vitrail::app {

// Creates the folder and those above it.  Throws Error naming what it is for.
void create_folder(const std::filesystem::path& folder, const std::string& purpose);

// create_folder() for the value of an option.  Throws CLI::ValidationError (a usage error) for "-" and for a new folder
// with the extension of an image or of an output file.
void create_output_folder(const std::filesystem::path& folder, const std::string& purpose,
                          const std::string& option = "-o");

// The names of images' files: that of the image without its extension, with a number if another image has it too.
class UniqueNames {
 public:
  std::string name_of(const std::string& path);  // "-": standard input

 private:
  std::set<std::string> taken_;
};

}  // namespace vitrail::app
