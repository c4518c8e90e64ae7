// SPDX-License-Identifier: Apache-2.0
#pragma once
// What lies in a tree of images, on disk or in an archive.
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

// Relative paths with '/' between their parts, each list sorted bytewise.
struct FolderListing {
  std::vector<std::string> images;   // files that image::is_image_path accepts
  std::vector<std::string> folders;  // at any depth, empty ones too
};

// Everything below `folder`.  Symbolic links are followed, but not into a folder that the walk is inside of.  Throws
// Error naming the folder that cannot be read.
FolderListing walk_folder(const std::filesystem::path& folder);

}  // namespace vitrail::data
