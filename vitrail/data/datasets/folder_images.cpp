// SPDX-License-Identifier: Apache-2.0
// Images in files below a folder.
#include "vitrail/base/mapped_file_internal.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/content_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

class FolderImages : public ImageSource {
 public:
  explicit FolderImages(fs::path folder) : folder_(std::move(folder)) {}
  std::string path(const Row& row) const override { return (folder_ / row.path).string(); }
  image::Image image(const Row& row, const image::DecodeOptions& options) const override {
    return image::read_image(path(row), options);
  }
  int64_t content_size(const Row& row) const override { return file_size(path(row)); }
  uint64_t content_hash(const Row& row) const override { return hash_of_file(path(row)); }
  std::optional<int64_t> modified_at(const Row& row) const override { return modification_time(path(row)); }

 private:
  fs::path folder_;
};

class FolderFiles : public CifarFiles {
 public:
  explicit FolderFiles(fs::path folder) : folder_(std::move(folder)) {}
  bool has(const std::string& name) const override {
    std::error_code ignored;
    return fs::is_regular_file(folder_ / name, ignored);
  }
  CifarFile open(const std::string& name) const override {
    const auto file = files_.get(folder_ / name);
    return {(folder_ / name).string(), file->bytes(), file};
  }
  std::string path() const override { return folder_.string(); }

 private:
  fs::path folder_;
  ReadOnce<MappedFile> files_;
};

}  // namespace

ImageSourcePtr images_below(const fs::path& folder) { return std::make_shared<FolderImages>(folder); }

CifarFilesPtr files_of(const fs::path& folder) { return std::make_shared<FolderFiles>(folder); }

}  // namespace vitrail::data
