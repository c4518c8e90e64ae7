// SPDX-License-Identifier: Apache-2.0
#pragma once
// Decides whether the top folders of a listing are splits or classes.
#include <map>
#include <string>
#include <vector>

#include "vitrail/data/datasets/class_folders_internal.h"

namespace vitrail::data {

// A folder at the top of a listing that contains images at some depth.
struct TopFolder {
  bool has_images = false;         // directly in it
  bool has_class_folders = false;  // folders with images
  bool may_be_split() const { return has_class_folders && !has_images; }
};

std::map<std::string, TopFolder> top_folders(const FolderListing& listing);

// Warns of the top folders that are named as splits and have folders or files, but no images.
void warn_of_splits_without_images(const FolderListing& listing, const std::string& where);

// The split folder to descend into; empty if the top folders are the classes.  Throws as read_class_folders.
std::string choose_split(const FolderListing& listing, const ClassFolderOptions& options);

// Whether the single top folder `name` is around the class folders.  Throws Error if its name and those of most folders
// in it are of classes.
bool is_wrapper(const std::string& name, const FolderListing& listing, const ClassFolderOptions& options);

// Whether the name is that of a class of the model, if the options describe one.
bool names_a_class(const std::string& name, const ClassFolderOptions& options);

}  // namespace vitrail::data
