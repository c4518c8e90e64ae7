// SPDX-License-Identifier: Apache-2.0
#pragma once
// Datasets of class folders, on disk and in archives.
#include <filesystem>
#include <set>
#include <string>

#include "vitrail/data/datasets/class_folders_internal.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// The common part of folders and archives: a listing read as class folders.
class ClassDataset : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(contents_.items.size()); }
  std::string path(int64_t i) const override { return (root_ / contents_.items.at(i).path).string(); }
  int64_t label(int64_t i) const override { return contents_.items.at(i).label; }

 protected:
  explicit ClassDataset(const std::filesystem::path& root, const DatasetOptions& options)
      : root_(root), decode_(options.decode) {}

  void read_listing(FolderListing listing, const DatasetOptions& options);

  std::filesystem::path root_;
  image::DecodeOptions decode_;
  ClassFolders contents_;
};

// Adds a file of an archive and the folders around it, which need not be listed.  Folders end with '/'.
void add_entry(FolderListing& listing, std::set<std::string>& folders, std::string path);

}  // namespace vitrail::data
