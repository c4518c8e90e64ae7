// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a listing of image paths as class folders (torchvision's ImageFolder), with or without split folders.  It works
// on paths only, so folders on disk and archives follow the same rules.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/folder_walk_internal.h"

namespace vitrail::data {

struct LabelledPath {
  std::string path;  // relative, as in the listing
  int64_t label;
};

struct ClassFolders {
  std::vector<std::string> class_names;  // by label
  std::vector<LabelledPath> items;       // sorted by class folder, then by path
};

struct ClassFolderOptions {
  std::string where{};                     // the dataset's path, for messages
  std::string split{};                     // empty: test, else val
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids; may be empty
  int64_t num_classes = INT64_MAX;         // number of the model's classes
  bool skip_wrapper = false;               // descends into a single top folder, as archives of a folder have it
};

// A top folder is a split if it contains folders but no images, provided that one is named train, val (valid,
// validation), test or options.split.  Class folders are the folders in the split, or the top folders if there are no
// splits; their images may be at any depth.  An empty class folder keeps its index.  Names that begin with '.' and
// __MACOSX are ignored.  Images outside the class folders are ignored with a warning.
//
// match_classes turns class names into labels.  If no name matches, labels are numbers in sorted order, with a warning
// if the model has labels.
//
// Throws Error for a missing split (listing the existing ones), if there is neither test nor val and none was named,
// without class folders or images, with more folders than the model's classes if none matches, and as match_classes.
ClassFolders read_class_folders(FolderListing listing, const ClassFolderOptions& options);

}  // namespace vitrail::data
