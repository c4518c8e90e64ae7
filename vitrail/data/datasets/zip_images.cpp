// SPDX-License-Identifier: Apache-2.0
// Class folders in a zip archive.  Images are read from the mapped archive; nothing is unpacked to disk.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "vitrail/base/error.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/zip_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

// The path of an entry from the top of the archive.  Some Windows programs write backslashes, others "./" or "/" first.
std::string path_of(const ZipEntry& entry) {
  std::string path = entry.name;
  std::replace(path.begin(), path.end(), '\\', '/');
  while (path.starts_with("./") || path.starts_with('/')) path.erase(0, path.find('/') + 1);
  return path;
}

class ZipImages : public ImageSource {
 public:
  explicit ZipImages(const fs::path& zip) : path_(zip), file_(zip), zip_(file_.bytes(), zip.string()) {
    for (const ZipEntry& entry : zip_.entries()) entries_.emplace(path_of(entry), &entry);
  }

  FolderListing listing() const {
    FolderListing listing;
    std::set<std::string> folders;
    for (const ZipEntry& entry : zip_.entries()) {
      if (entry.is_link) {
        ++listing.symbolic_links;
      } else {
        add_entry(listing, folders, path_of(entry));
      }
    }
    sort_listing(listing);
    return listing;
  }

  std::string path(const Row& row) const override { return (path_ / row.path).string(); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    return image::decode(content(row), options, path(row));
  }
  int64_t content_size(const Row& row) const override { return static_cast<int64_t>(entry(row).size); }
  uint64_t content_hash(const Row& row) const override { return hash_of(content(row)); }
  std::optional<int64_t> modified_at(const Row&) const override { return modification_time(path_); }

  // Encryption and methods such as LZMA are usually those of the whole archive.
  void require_readable(const std::vector<Row>& rows) const override {
    std::vector<std::string> others;
    for (const Row& row : rows) {
      if (entry(row).encrypted || (entry(row).method != 0 && entry(row).method != 8)) others.push_back(row.path);
    }
    if (others.empty()) return;
    throw Error(path_.string(), "images that are stored or deflated, without encryption",
                str(others.size(), " of ", rows.size(), " otherwise: ", quoted_list(others)));
  }

 private:
  static constexpr uint64_t kMaxImageFile = uint64_t{1} << 30;

  const ZipEntry& entry(const Row& row) const { return *entries_.at(row.path); }

  std::vector<std::byte> content(const Row& row) const {
    std::vector<std::byte> bytes = zip_.read(entry(row), kMaxImageFile);
    release(entry(row));
    return bytes;
  }

  // Releases the pages of an entry (and parts of its neighbours on the same pages), so that reading a complete archive
  // does not fill the memory with it.
  void release(const ZipEntry& entry) const {
    constexpr uint64_t kMargin = 1 << 16;  // covers a page of any system and the local header
    const uint64_t size = file_.bytes().size();
    const uint64_t begin = entry.header_offset - std::min(entry.header_offset, kMargin);
    const uint64_t end = entry.header_offset + std::min(entry.compressed_size + kMargin, size - entry.header_offset);
    file_.release(file_.bytes().data() + begin, end - begin);
  }

  fs::path path_;
  MappedFile file_;
  ZipReader zip_;
  std::unordered_map<std::string, const ZipEntry*> entries_;  // by path
};

}  // namespace

ImageFiles zip_files(const fs::path& zip) {
  const auto images = std::make_shared<const ZipImages>(zip);
  return {zip.string(), images->listing(), images};
}

}  // namespace vitrail::data
