// SPDX-License-Identifier: Apache-2.0
// Class folders on disk (torchvision's ImageFolder) and in a zip archive.
#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/data/datasets/class_dataset_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

class FolderDataset : public ClassDataset {
 public:
  FolderDataset(const fs::path& folder, const DatasetOptions& options) : ClassDataset(folder, options) {
    read_listing(walk_folder(folder), options);
  }
  image::Image image(int64_t i) const override { return image::read_image(path(i), decode_); }
  int64_t content_size(int64_t i) const override { return file_size(path(i)); }
  uint64_t content_hash(int64_t i) const override { return hash_of_file(path(i)); }
  std::optional<int64_t> modified_at(int64_t i) const override { return modification_time(path(i)); }
};

// The path of an entry from the top of the archive.  Some Windows programs write backslashes, others "./" or "/" first.
std::string path_of(const ZipEntry& entry) {
  std::string path = entry.name;
  std::replace(path.begin(), path.end(), '\\', '/');
  while (path.starts_with("./") || path.starts_with('/')) path.erase(0, path.find('/') + 1);
  return path;
}

FolderListing listing_of(const ZipReader& zip) {
  FolderListing listing;
  std::set<std::string> folders;
  for (const ZipEntry& entry : zip.entries()) {
    if (entry.is_link) {
      ++listing.symbolic_links;
    } else {
      add_entry(listing, folders, path_of(entry));
    }
  }
  sort_listing(listing);
  return listing;
}

// Images are read from the mapped archive; nothing is unpacked to disk.
class ArchiveDataset : public ClassDataset {
 public:
  ArchiveDataset(const fs::path& zip, const DatasetOptions& options)
      : ClassDataset(zip, options), file_(zip), zip_(file_.bytes(), zip.string()) {
    read_listing(listing_of(zip_), options);
    for (const ZipEntry& entry : zip_.entries()) entries_.emplace(path_of(entry), &entry);
    require_readable();
  }

  image::Image image(int64_t i) const override { return image::decode(content(i), decode_, path(i)); }
  int64_t content_size(int64_t i) const override { return static_cast<int64_t>(entry(i).size); }
  uint64_t content_hash(int64_t i) const override { return hash_of(content(i)); }
  std::optional<int64_t> modified_at(int64_t) const override { return modification_time(root_); }

 private:
  // Encryption and methods such as LZMA are usually those of the whole archive.
  void require_readable() const {
    std::vector<std::string> others;
    for (const LabelledPath& item : contents_.items) {
      const ZipEntry& entry = *entries_.at(item.path);
      if (entry.encrypted || (entry.method != 0 && entry.method != 8)) others.push_back(item.path);
    }
    if (others.empty()) return;
    throw Error(root_.string(), "images that are stored or deflated, without encryption",
                str(others.size(), " of ", size(), " otherwise: ", quoted_list(others)));
  }

  const ZipEntry& entry(int64_t i) const { return *entries_.at(contents_.items.at(i).path); }

  std::vector<std::byte> content(int64_t i) const {
    std::vector<std::byte> bytes = zip_.read(entry(i), kMaxImageFile);
    release(entry(i));
    return bytes;
  }

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
  std::unordered_map<std::string, const ZipEntry*> entries_;  // by path
};

}  // namespace

std::unique_ptr<Dataset> open_class_folders(const fs::path& folder, const DatasetOptions& options) {
  return std::make_unique<FolderDataset>(folder, options);
}

std::unique_ptr<Dataset> open_class_archive(const fs::path& zip, const DatasetOptions& options) {
  return std::make_unique<ArchiveDataset>(zip, options);
}

std::vector<std::string> class_folder_splits(const fs::path& folder) {
  return splits_in(walk_folder(folder), folder.string());
}

std::vector<std::string> class_archive_splits(const fs::path& zip) {
  const MappedFile file(zip);
  return splits_in(listing_of(ZipReader(file.bytes(), zip.string())), zip.string());
}

}  // namespace vitrail::data
