// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reads a listing of image paths as class folders (torchvision's ImageFolder), with or without split folders.  It works
// on paths only, so folders on disk and archives follow the same rules.
#include <cstdint>
#include <string>
#include <vector>

#include "vitrail/data/datasets/folder_walk_internal.h"

namespace vitrail::data {

struct LabelledPath {
  std::string path;  // relative, as in the listing
  int64_t label;
};

struct ClassFolders {
  std::vector<std::string> class_names;  // by label
  std::vector<LabelledPath> items;       // sorted by class folder in natural order, then by path
  std::string split;                     // the folder of the split, as in the listing; empty without splits
};

struct ClassFolderOptions {
  std::string where{};  // the dataset's path, for messages
  std::string split{};  // empty: the first of default_splits; ".": the folders are classes
  std::vector<std::string> default_splits = {"test", "val"};
  std::vector<std::string> labels{};       // the model's class names in index order; may be empty
  std::vector<std::string> wordnet_ids{};  // their WordNet ids; may be empty
  int64_t num_classes = INT64_MAX;         // number of the model's classes; INT64_MAX: the folders define them
};

// Names that begin with '.' are ignored, folders without images are no classes (a warning counts them), and a single
// folder around the others is entered (is_wrapper); in a split it may have the split's name.
//
// Splits.  If all top folders contain class folders and are named as splits (canonical_split), they are splits.  If
// only some are, it is an error, unless options.split names one of them; so is a folder that has images and is named as
// a split, unless all top folders are classes of the model.  Folders of class folders that only look like splits
// (resembled_split) or are folds are an error, unless they are classes of the model.  The wanted split, and one that is
// preferred to the split found, is an error if it has folders or files but no images.
//
// Classes.  The folders in the split, or the top folders.  Their images may be at any depth.  match_classes turns names
// into labels.  If no name matches, labels are numbers in natural order: silently if the folders define the classes,
// else with a warning and only if there are as many folders as classes.  Empty folders are not counted, but if they are
// needed, those whose images are of kinds that are not read, and those that cannot be read.
//
// Left-out files are counted in a warning.  A folder whose images are all of kinds that are not read is an error if the
// folders define the classes, else a warning.  Images outside the class folders are ignored with a warning.
// A folder that cannot be read is left out with a warning; it is an error if it may be the wanted split, or a class
// that the folders define.
//
// Throws Error for all that, for a missing split (listing the existing ones), and without class folders or images.
ClassFolders read_class_folders(FolderListing listing, const ClassFolderOptions& options);

// The canonical names of the splits in a listing: those that read_class_folders finds by name.  Throws Error if one
// cannot be read, and warns of one that has folders or files but no images.  `where`: the dataset's path, for messages.
std::vector<std::string> splits_in(FolderListing listing, const std::string& where);

}  // namespace vitrail::data
