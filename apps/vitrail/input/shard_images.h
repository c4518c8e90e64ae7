// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images of webdataset shards: tar archives whose files have the key of their sample in front of the first dot.
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/vitrail/input/image_stream.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/tar_internal.h"
#include "vitrail/data/datasets/left_out_internal.h"

namespace vitrail::app {

// Whether the inputs are shards.  Throws CLI::ValidationError for shards beside other inputs.
bool are_shards(const std::vector<std::string>& inputs);

// Hidden files (as "._a.jpg" of macOS), symbolic links, all but the last file of a path, and files of other formats are
// left out.
class ShardImages {
 public:
  explicit ShardImages(const std::filesystem::path& path);  // throws Error for no tar archive

  // Counts what is left out, but not the labels, captions and the like of samples with an image.
  void count_left_out(data::LeftOut& counts) const;

  // Names images as "shard.tar:file".  The source refers to this object.
  ImageSource source(const Model& model, bool exif) const;

  // A line for the image of this name: {"key", "file", "size", "sha256", "status"}, where the status is "ok" or the
  // error.
  std::string record(const std::string& name, const std::string& error) const;

  // Whether a file of such lines has the same images, by their names and sizes.
  bool are_in(const std::filesystem::path& records) const;

 private:
  std::string name_of(size_t i) const { return file_.path().string() + ":" + entries_[i].path; }
  std::span<const std::byte> content(const TarEntry& entry) const {
    return file_.bytes().subspan(entry.offset, entry.size);
  }

  MappedFile file_;
  TarListing listing_;
  std::vector<TarEntry> entries_;  // the images, sorted by path
};

}  // namespace vitrail::app
