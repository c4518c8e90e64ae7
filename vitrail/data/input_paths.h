// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a command works on, made from what its user typed.
#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

namespace vitrail::data {

// One image to come.
struct InputPath {
  std::string path;
  std::string error;  // empty, or why there is nothing to decode: a folder without images, a folder not readable
};

// Files by their extension (image::is_image_path) below `folder`, at any depth, as paths that begin with `folder`,
// sorted bytewise.  Symbolic links are followed, a link to a folder above itself is not.  Throws Error naming the
// folder that cannot be read.
std::vector<std::string> list_images(const std::filesystem::path& folder);

// Expands the inputs of a command line, in their order:
//   a folder   its list_images();
//   "-"        the lines of `standard_input`, each a file or a folder (empty lines are skipped);
//   else       the path as it is, whatever its extension and whether or not it exists: what is wrong with it shows
//              when it is decoded, in its own place among the results.
// A folder without images keeps its place with a `problem`.  Never throws for what the inputs name.
std::vector<InputPath> expand_input_paths(const std::vector<std::string>& inputs, std::istream& standard_input);

}  // namespace vitrail::data
