// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/class_folders_internal.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/class_matching_internal.h"

namespace vitrail::data {
namespace {

std::string_view top_folder(std::string_view path) { return path.substr(0, path.find('/')); }

bool is_hidden(std::string_view path) {
  return path.starts_with('.') || path.find("/.") != path.npos || top_folder(path) == "__MACOSX";
}

// "val" for its synonyms valid and validation.
std::string_view canonical_split(std::string_view name) {
  return name == "valid" || name == "validation" ? std::string_view("val") : name;
}

bool is_split_name(std::string_view name) {
  const std::string_view split = canonical_split(name);
  return split == "train" || split == "val" || split == "test";
}

struct TopFolder {
  bool has_folders = false, has_images = false;
  bool may_be_split() const { return has_folders && !has_images; }
};

std::map<std::string, TopFolder> top_folders(const FolderListing& listing) {
  std::map<std::string, TopFolder> tops;
  const auto visit = [&](std::string_view path, bool is_image) {
    const size_t slash = path.find('/');
    if (is_image && slash == path.npos) return;
    TopFolder& top = tops[std::string(path.substr(0, slash))];
    if (slash == path.npos) return;
    const bool deeper = path.find('/', slash + 1) != path.npos;
    top.has_images |= is_image && !deeper;
    top.has_folders |= !is_image || deeper;
  };
  for (const std::string& path : listing.images) visit(path, true);
  for (const std::string& path : listing.folders) visit(path, false);
  return tops;
}

// Keeps the contents of the folder `top`, with paths relative to it.
void descend(FolderListing& listing, const std::string& top, std::string& prefix) {
  const auto make_relative = [&](std::vector<std::string>& paths) {
    std::erase_if(paths, [&](const std::string& path) { return !path.starts_with(top + "/"); });
    for (std::string& path : paths) path.erase(0, top.size() + 1);
  };
  make_relative(listing.images);
  make_relative(listing.folders);
  prefix += top + "/";
}

// The split folder to descend into; empty if the top folders are the classes.
std::string choose_split(const std::map<std::string, TopFolder>& tops, const ClassFolderOptions& options) {
  std::vector<std::string> splits;
  for (const auto& [name, top] : tops) {
    if (top.may_be_split()) splits.push_back(name);
  }
  if (options.split.empty() && std::none_of(splits.begin(), splits.end(), is_split_name)) return "";
  const auto find = [&](std::string_view wanted) {
    const auto exact = std::find(splits.begin(), splits.end(), wanted);
    if (exact != splits.end()) return exact;
    return std::find_if(splits.begin(), splits.end(),
                        [&](auto& s) { return canonical_split(s) == canonical_split(wanted); });
  };
  auto found = find(options.split.empty() ? "test" : options.split);
  if (options.split.empty() && found == splits.end()) found = find("val");
  if (found != splits.end()) return *found;
  std::string existing;
  for (const std::string& split : splits) existing += (existing.empty() ? "" : ", ") + split;
  const std::string wanted =
      options.split.empty() ? "a split test or val, or the name of another one" : "a split " + options.split;
  throw Error(options.where, wanted, splits.empty() ? "a dataset without splits" : "these splits: " + existing);
}

std::map<std::string, std::vector<std::string>> group_by_class(const FolderListing& listing, const std::string& where) {
  std::map<std::string, std::vector<std::string>> classes;
  for (const std::string& path : listing.folders) classes[std::string(top_folder(path))];
  size_t outside = 0;
  for (const std::string& path : listing.images) {
    if (path.find('/') == path.npos) {
      ++outside;
    } else {
      classes[std::string(top_folder(path))].push_back(path);
    }
  }
  if (classes.empty()) throw Error(where, "class folders with images in them", str(outside, " images and no folder"));
  if (outside > 0) warn(str(where, ": ", outside, " images outside the class folders are ignored"));
  return classes;
}

}  // namespace

ClassFolders read_class_folders(FolderListing listing, const ClassFolderOptions& options) {
  std::string prefix;
  std::erase_if(listing.images, is_hidden);
  std::erase_if(listing.folders, is_hidden);
  std::map<std::string, TopFolder> tops = top_folders(listing);
  while (options.skip_wrapper && tops.size() == 1 && tops.begin()->second.may_be_split() &&
         !is_split_name(tops.begin()->first) && tops.begin()->first != options.split) {
    descend(listing, tops.begin()->first, prefix);
    tops = top_folders(listing);
  }
  const std::string split = choose_split(tops, options);
  if (!split.empty()) descend(listing, split, prefix);

  const auto classes = group_by_class(listing, options.where);
  ClassFolders result;
  for (const auto& [name, paths] : classes) result.class_names.push_back(name);
  const ClassMatch match = match_classes(options.where, result.class_names, options.labels, options.wordnet_ids);
  if (!match.matched && static_cast<int64_t>(classes.size()) > options.num_classes) {
    throw Error(options.where,
                str("at most ", options.num_classes, " class folders, the number of the model's classes"),
                str(classes.size(), "; no folder is named after a label"));
  }
  size_t position = 0;
  for (const auto& [name, paths] : classes) {
    for (const std::string& path : paths) result.items.push_back({prefix + path, match.indices[position]});
    ++position;
  }
  if (result.items.empty()) throw Error(options.where, "images in the class folders", "none");
  if (!match.matched && !options.labels.empty()) {
    warn(str(options.where, ": none of the ", classes.size(), " class folders names one of the model's ",
             options.labels.size(), " labels; class indices follow the sorted order of the folders"));
  }
  if (match.matched) result.class_names = options.labels.empty() ? options.wordnet_ids : options.labels;
  return result;
}

}  // namespace vitrail::data
