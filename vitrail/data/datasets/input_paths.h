// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expands the image arguments of a command line: files and folders.
#include <filesystem>
#include <string>
#include <vector>

namespace vitrail::data {

struct InputPath {
  std::string path;
  std::string error;  // empty, or why there is no image to decode: a folder without images or an unreadable one
};

// The image files (by extension: image::is_image_path) in `folder` and its subfolders, as paths that begin with
// `folder`, sorted bytewise.  Follows symbolic links, but not to a folder that contains the link.  Throws Error naming
// a folder that cannot be read.
std::vector<std::string> list_images(const std::filesystem::path& folder);

// Expands command-line inputs in their order:
//   a folder   its list_images();
//   otherwise  the path itself.  Whether it can be read shows when it is decoded.
// A folder without images gives one entry with an `error`, and so does each subfolder that cannot be read.  Other files
// of folders are left out with one warning that counts them by their extensions.  Does not throw for any input.
std::vector<InputPath> expand_input_paths(const std::vector<std::string>& inputs);

}  // namespace vitrail::data
