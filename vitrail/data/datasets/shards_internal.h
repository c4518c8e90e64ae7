// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tar archives of images with other files beside them, as webdataset has them.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {

// Images of several archives; Row::entry is the archive.
class Shards : public ImageSource {
 public:
  void add(ImageSourcePtr shard) { shards_.push_back(std::move(shard)); }
  std::string path(const Row& row) const override { return of(row).path(row); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    return of(row).image(row, options);
  }
  int64_t content_size(const Row& row) const override { return of(row).content_size(row); }
  uint64_t content_hash(const Row& row) const override { return of(row).content_hash(row); }
  std::optional<int64_t> modified_at(const Row& row) const override { return of(row).modified_at(row); }

 private:
  const ImageSource& of(const Row& row) const { return *shards_.at(static_cast<size_t>(row.entry)); }

  std::vector<ImageSourcePtr> shards_;
};

// The archives of a folder without images.
inline std::vector<std::string> shards_of(const FolderListing& listing) {
  if (!listing.images.empty()) return {};
  std::vector<std::string> shards = listing.others;
  std::erase_if(shards, [](const std::string& name) { return !name.ends_with(".tar"); });
  return shards;
}

inline bool is_tar_name(const std::string& name) {
  return name.ends_with(".tar") || name.ends_with(".tar.gz") || name.ends_with(".tgz");
}

}  // namespace vitrail::data
