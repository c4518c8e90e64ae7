// SPDX-License-Identifier: Apache-2.0
// Class folders on disk (torchvision's ImageFolder) and in a zip archive.
#include <algorithm>

#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/data/class_folders_internal.h"
#include "vitrail/data/dataset_formats_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

// The common part of folders and archives: a listing read as class folders.
class ClassDataset : public Dataset {
 public:
  int64_t size() const override { return static_cast<int64_t>(contents_.items.size()); }
  std::string path(int64_t i) const override { return (root_ / contents_.items.at(i).path).string(); }
  int64_t label(int64_t i) const override { return contents_.items.at(i).label; }

 protected:
  explicit ClassDataset(const fs::path& root, const DatasetOptions& options) : root_(root), decode_(options.decode) {}

  void read_listing(FolderListing listing, const DatasetOptions& options, bool skip_wrapper) {
    contents_ = read_class_folders(std::move(listing), {.where = root_.string(),
                                                        .split = options.split,
                                                        .labels = options.labels,
                                                        .wordnet_ids = options.wordnet_ids,
                                                        .num_classes = class_limit(options),
                                                        .skip_wrapper = skip_wrapper});
    class_names_ = std::move(contents_.class_names);
  }

  fs::path root_;
  image::DecodeOptions decode_;
  ClassFolders contents_;
};

class FolderDataset : public ClassDataset {
 public:
  FolderDataset(const fs::path& folder, const DatasetOptions& options) : ClassDataset(folder, options) {
    read_listing(walk_folder(folder), options, false);
  }
  image::Image image(int64_t i) const override { return image::read_image(path(i), decode_); }
};

// Images are read from the mapped archive; nothing is unpacked to disk.
class ArchiveDataset : public ClassDataset {
 public:
  ArchiveDataset(const fs::path& zip, const DatasetOptions& options)
      : ClassDataset(zip, options), file_(zip), zip_(file_.bytes(), zip.string()) {
    FolderListing listing;
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.is_folder()) {
        listing.folders.push_back(entry.name.substr(0, entry.name.size() - 1));
      } else if (image::is_image_path(entry.name)) {
        listing.images.push_back(entry.name);
      }
    }
    std::sort(listing.images.begin(), listing.images.end());
    std::sort(listing.folders.begin(), listing.folders.end());
    read_listing(std::move(listing), options, true);
  }

  image::Image image(int64_t i) const override {
    const ZipEntry& entry = *zip_.find(contents_.items.at(i).path);
    const std::vector<std::byte> bytes = zip_.read(entry, kMaxImageFile);
    release(entry);
    return image::decode(bytes, decode_, path(i));
  }

 private:
  static constexpr uint64_t kMaxImageFile = uint64_t{1} << 30;

  // Releases the pages of an entry (and parts of its neighbours on the same pages), so that reading a complete archive
  // does not fill the memory with it.
  void release(const ZipEntry& entry) const {
    constexpr uint64_t kMargin = 1 << 16;  // covers a page of any system and the local header
    const uint64_t size = file_.bytes().size();
    const uint64_t begin = entry.header_offset - std::min(entry.header_offset, kMargin);
    const uint64_t end = entry.header_offset + std::min(entry.compressed_size + kMargin, size - entry.header_offset);
    file_.release(file_.bytes().data() + begin, end - begin);
  }

  MappedFile file_;
  ZipReader zip_;
};

}  // namespace

std::unique_ptr<Dataset> open_class_folders(const fs::path& folder, const DatasetOptions& options) {
  return std::make_unique<FolderDataset>(folder, options);
}

std::unique_ptr<Dataset> open_class_archive(const fs::path& zip, const DatasetOptions& options) {
  return std::make_unique<ArchiveDataset>(zip, options);
}

}  // namespace vitrail::data
