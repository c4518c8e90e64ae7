// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a tree of images as class folders, under split folders or not.  Knows paths only, so that a folder on disk and
// an archive follow the same rules.
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
  std::vector<LabelledPath> items;       // by class folder, then by path
};

struct ClassFolderOptions {
  std::string where{};                     // the dataset's path, for messages
  std::string split{};                     // empty: test, else val
  std::vector<std::string> labels{};       // of the model, in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // likewise
  int64_t num_classes = INT64_MAX;         // of the model
  bool skip_wrapper = false;               // an archive's single outermost folder, made by archiving the folder itself
};

// Split folders: those on top that hold folders and no images of their own.  They are read as splits when one is named
// train, val (valid, validation) or test, or as options.split asks.  Class folders are the folders below, images at any
// depth in them; an empty class folder keeps its place among the classes.  Names that begin with '.', and __MACOSX,
// are skipped, images that lie beside the class folders too, with a warning.
//
// Class names become labels as match_classes says.  When none of them names a label of the model they are numbered in
// sorted order, with a warning if the model has labels.
//
// Throws Error when a split is not there (listing those that are), when there is neither test nor val and none was
// named, when there are no class folders or no images in them, when there are more than the model has classes and none
// names one, and as match_classes.
ClassFolders read_class_folders(FolderListing listing, const ClassFolderOptions& options);

}  // namespace vitrail::data
