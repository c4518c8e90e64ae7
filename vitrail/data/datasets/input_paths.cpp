// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/input_paths.h"

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

void expand_folder(const std::string& folder, std::vector<InputPath>& expanded, std::vector<std::string>& left_out) {
  const FolderListing listing = walk_folder(folder);
  for (const std::string& path : listing.images) expanded.push_back({(fs::path(folder) / path).string(), ""});
  for (const auto& [path, error] : listing.unreadable) expanded.push_back({(fs::path(folder) / path).string(), error});
  if (listing.images.empty() && listing.unreadable.empty()) {
    const std::string others = left_out_text(listing.others);
    const std::string error = folder + ": expected a folder with images, got none";
    expanded.push_back({folder, others.empty() ? error : error + " (" + others + ")"});
  } else {
    left_out.insert(left_out.end(), listing.others.begin(), listing.others.end());
  }
}

void expand(const std::string& input, std::vector<InputPath>& expanded, std::vector<std::string>& left_out) {
  std::error_code ignored;
  if (!fs::is_directory(input, ignored)) {
    expanded.push_back({input, ""});
    return;
  }
  try {
    expand_folder(input, expanded, left_out);
  } catch (const Error& error) {
    expanded.push_back({input, error.what()});
  }
}

}  // namespace

std::vector<std::string> list_images(const fs::path& folder) {
  const FolderListing listing = walk_folder(folder);
  require_all_read(listing);
  std::vector<std::string> paths = listing.images;
  for (std::string& path : paths) path = (folder / path).string();
  return paths;
}

std::vector<InputPath> expand_input_paths(const std::vector<std::string>& inputs) {
  std::vector<InputPath> expanded;
  std::vector<std::string> left_out;
  for (const std::string& input : inputs) expand(input, expanded, left_out);
  if (!left_out.empty()) warn(left_out_text(left_out));
  return expanded;
}

}  // namespace vitrail::data
