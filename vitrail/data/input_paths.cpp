// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/input_paths.h"

#include "vitrail/base/error.h"
#include "vitrail/data/folder_walk_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

void expand(const std::string& input, std::vector<InputPath>& expanded) {
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) {
    expanded.push_back({input, ""});
    return;
  }
  try {
    const std::vector<std::string> images = list_images(input);
    for (const std::string& path : images) expanded.push_back({path, ""});
    if (images.empty()) expanded.push_back({input, input + ": expected a folder with images, got none"});
  } catch (const Error& error) {
    expanded.push_back({input, error.what()});
  }
}

}  // namespace

std::vector<std::string> list_images(const fs::path& folder) {
  std::vector<std::string> paths = walk_folder(folder).images;
  for (std::string& path : paths) path = (folder / path).string();
  return paths;
}

std::vector<InputPath> expand_input_paths(const std::vector<std::string>& inputs) {
  std::vector<InputPath> expanded;
  for (const std::string& input : inputs) expand(input, expanded);
  return expanded;
}

}  // namespace vitrail::data
