// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides which folders of a listing are splits, and which are classes.
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vitrail/data/datasets/dataset.h"
#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/data/datasets/splits_internal.h"

namespace vitrail::data {

// The part of a listing in one folder.
struct Subfolder {
  const FolderListing& listing;
  std::string where;        // the set, for messages
  std::string prefix = {};  // "" for all of it, or the folder with '/' at its end

  // Those of the sorted paths that are in it, with the prefix.
  using Paths = std::span<const std::string>;
  Paths select(Paths paths) const;
  Subfolder enter(const std::string& name) const { return {listing, where, prefix + name + "/"}; }
  // The first part of a path behind the prefix, and whether it is the last one.
  std::string first(const std::string& path) const;
  bool is_top(const std::string& path) const { return path.find('/', prefix.size()) == path.npos; }
};

// A folder at the top of a subfolder that contains images at some depth.
struct TopFolder {
  bool has_images = false;         // directly in it
  bool has_class_folders = false;  // folders with images
  bool may_be_split() const { return has_class_folders && !has_images; }
};

std::map<std::string, TopFolder> top_folders(const Subfolder& folder);

// Enters single folders around the class or split folders, as archives of a folder have them, but none that is called
// like a class of the model.  Says which splits beside them are lost because they have no images.  `split`: the split
// that the folder is of, whose name such a folder may have.  Throws Error if folders in one called like a class are
// called so too.
void skip_wrappers(Subfolder& folder, const DatasetOptions& options, const std::string& split = "");

// The splits among the top folders.  Existing are those named as splits, or all folders of class folders if the options
// name a split.
Splits splits_of(const Subfolder& folder, const DatasetOptions& options);

// Warns of splits without images.
void report_unusable(const Splits& splits);

// The split folder; empty if the top folders are the classes.  Throws Error unless the names say which they are.
std::string choose_split(const Subfolder& folder, const DatasetOptions& options);

}  // namespace vitrail::data
