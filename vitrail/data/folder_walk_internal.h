// SPDX-License-Identifier: Apache-2.0
#pragma once
// Recursive listing of a folder's images.
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

// Relative paths with '/' as separator; each list is sorted bytewise.
struct FolderListing {
  std::vector<std::string> images;   // files that image::is_image_path accepts
  std::vector<std::string> folders;  // at any depth, empty ones too
};

// Lists `folder` recursively.  Follows symbolic links, but not to a folder that contains the link.  Throws Error naming
// a folder that cannot be read.
FolderListing walk_folder(const std::filesystem::path& folder);

}  // namespace vitrail::data
