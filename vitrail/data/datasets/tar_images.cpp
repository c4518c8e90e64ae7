// SPDX-License-Identifier: Apache-2.0
// Class folders, or the files of CIFAR, in a tar archive, which may be compressed with gzip.
#include <map>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/gzip_internal.h"
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/base/tar_internal.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

// Limit of a compressed archive's content, which is held in memory.
constexpr uint64_t kMaxArchiveContent = uint64_t{4} << 30;

// The bytes and entries of an archive.
class TarFile {
 public:
  explicit TarFile(const fs::path& path) : file_(path), bytes_(file_.bytes()) {
    if (is_gzip(bytes_)) {
      try {
        decompressed_ = gunzip(bytes_, kMaxArchiveContent, path.string());
      } catch (const std::bad_alloc&) {
        throw Error(path.string(), "memory for the content of the archive (unpack it, or use a .tar)", "too little");
      }
      bytes_ = decompressed_;
    }
    if (!is_tar(bytes_)) throw Error(path.string(), "a tar archive, which may be compressed with gzip", "other data");
    listing_ = read_tar(bytes_, path.string());
    for (const TarEntry& entry : listing_.entries) {
      if (!entry.path.ends_with('/')) index_[entry.path] = &entry;
    }
  }

  const fs::path& path() const { return file_.path(); }
  const TarListing& listing() const { return listing_; }
  const TarEntry* find(const std::string& name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? nullptr : found->second;
  }
  std::span<const std::byte> content(const TarEntry& entry) const { return bytes_.subspan(entry.offset, entry.size); }

 private:
  MappedFile file_;
  std::vector<std::byte> decompressed_;
  std::span<const std::byte> bytes_;
  TarListing listing_;
  std::map<std::string, const TarEntry*> index_;
};

using TarFilePtr = std::shared_ptr<const TarFile>;

class TarImages : public ImageSource {
 public:
  explicit TarImages(TarFilePtr tar) : tar_(std::move(tar)) {}
  std::string path(const Row& row) const override { return (tar_->path() / row.path).string(); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    return image::decode(content(row), options, path(row));
  }
  int64_t content_size(const Row& row) const override { return static_cast<int64_t>(content(row).size()); }
  uint64_t content_hash(const Row& row) const override { return hash_of(content(row)); }
  std::optional<int64_t> modified_at(const Row&) const override { return modification_time(tar_->path()); }

 private:
  std::span<const std::byte> content(const Row& row) const { return tar_->content(*tar_->find(row.path)); }

  TarFilePtr tar_;
};

// A folder in an archive that has files of CIFAR.
class TarFiles : public CifarFiles {
 public:
  TarFiles(TarFilePtr tar, std::string folder) : tar_(std::move(tar)), folder_(std::move(folder)) {}
  bool has(const std::string& name) const override { return tar_->find(folder_ + name) != nullptr; }
  CifarFile open(const std::string& name) const override {
    return {(tar_->path() / folder_ / name).string(), tar_->content(*tar_->find(folder_ + name)), tar_};
  }
  std::string path() const override { return (tar_->path() / folder_).string(); }

 private:
  TarFilePtr tar_;
  std::string folder_;  // "", or ends with '/'
};

// CIFAR's archives have one folder.
CifarFilesPtr cifar_files_of(const TarFilePtr& tar) {
  std::set<std::string> folders;
  for (const TarEntry& entry : tar->listing().entries) folders.insert(entry.path.substr(0, entry.path.rfind('/') + 1));
  if (folders.size() > 2) return nullptr;  // with the empty name of the top
  for (const std::string& folder : folders) {
    auto files = std::make_shared<const TarFiles>(tar, folder);
    if (has_cifar(*files)) return files;
  }
  return nullptr;
}

FolderListing listing_of(const TarFile& tar) {
  FolderListing listing;
  std::set<std::string> folders;
  for (const TarEntry& entry : tar.listing().entries) add_entry(listing, folders, entry.path);
  listing.symbolic_links = tar.listing().symbolic_links;
  listing.repeated = tar.listing().repeated;
  listing.trailing = tar.listing().trailing;
  sort_listing(listing);
  return listing;
}

}  // namespace

ImageFiles tar_files(const fs::path& path) {
  const auto tar = std::make_shared<const TarFile>(path);
  const auto text_of = [tar](const std::string& name) {
    const std::span<const std::byte> bytes = tar->content(*tar->find(name));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  return {path.string(), listing_of(*tar), std::make_shared<const TarImages>(tar), text_of};
}

ManifestPtr read_tar_archive(const fs::path& path) {
  const auto tar = std::make_shared<const TarFile>(path);
  if (CifarFilesPtr files = cifar_files_of(tar)) return read_cifar(std::move(files));
  return class_folder_manifest({path.string(), listing_of(*tar), std::make_shared<const TarImages>(tar)});
}

}  // namespace vitrail::data
