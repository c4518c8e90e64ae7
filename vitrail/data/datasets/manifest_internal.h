// SPDX-License-Identifier: Apache-2.0
#pragma once
// The rows of a manifest, where their images are, and the readers of each format.
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/data/datasets/folder_walk_internal.h"
#include "vitrail/data/datasets/manifest.h"

namespace vitrail::data {

struct Row {
  std::string path{};             // relative to the set; empty for arrays
  int64_t entry = 0;              // the position in arrays
  std::vector<int64_t> labels{};  // class indices in ascending order; one, unless Rows::is_multi_label
};

// The store of the images of rows.  Thread-safe; functions as those of Dataset.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  virtual std::string path(const Row& row) const = 0;
  virtual image::Image image(const Row& row, const image::DecodeOptions& options) const = 0;
  virtual int64_t content_size(const Row& row) const = 0;
  virtual uint64_t content_hash(const Row& row) const = 0;
  virtual std::optional<int64_t> modified_at(const Row&) const { return std::nullopt; }
  virtual void require_readable(const std::vector<Row>&) const {}  // throws Error for what an archive's directory tells
};
using ImageSourcePtr = std::shared_ptr<const ImageSource>;

// What Manifest::open opens.
struct Rows {
  std::string where{};  // the set, for messages
  std::string split{};  // as the set has it; empty without splits
  std::vector<Row> items{};
  std::vector<std::string> class_names{};  // by label; may be empty
  bool is_multi_label = false;
  ImageSourcePtr images{};
};

// Values that are read when they are first asked for.  Thread-safe.
template <class Value>
class ReadOnce {
 public:
  std::shared_ptr<const Value> get(const std::filesystem::path& file) const {
    const std::scoped_lock lock(mutex_);
    std::shared_ptr<const Value>& value = values_[file];
    if (!value) value = std::make_shared<const Value>(file);
    return value;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::map<std::filesystem::path, std::shared_ptr<const Value>> values_;
};

// The files of a folder or an archive.
struct ImageFiles {
  std::string where{};  // for messages
  FolderListing listing{};
  ImageSourcePtr images{};
  std::function<std::string(const std::string&)> text{};  // the content of another file of the listing; not of a zip
};
ImageFiles zip_files(const std::filesystem::path& zip);
ImageFiles tar_files(const std::filesystem::path& tar);

// The images of rows.
std::unique_ptr<Dataset> open_rows(Rows rows, const image::DecodeOptions& decode);

class CifarFiles;
using CifarFilesPtr = std::shared_ptr<const CifarFiles>;

using ManifestPtr = std::shared_ptr<const Manifest>;
ManifestPtr class_folder_manifest(ImageFiles files);
ManifestPtr read_tar_archive(const std::filesystem::path& tar);
ManifestPtr read_list(const std::filesystem::path& list, const Columns& columns);
ManifestPtr read_idx_file(const std::filesystem::path& images);
// Null if the list is not of images with labels: metadata beside class folders may say other things.
ManifestPtr read_metadata_list(const std::filesystem::path& list, const Columns& columns);
// Null if there is no such list in the folder or in those called as splits.
ManifestPtr read_metadata(const std::filesystem::path& folder, const FolderListing& listing, const Columns& columns);
// Null if none of the files directly in the folder has IDX images.
ManifestPtr read_idx_folder(const std::filesystem::path& folder, const FolderListing& listing);
ManifestPtr read_cifar(CifarFilesPtr files);
ManifestPtr read_cifar_file(const std::filesystem::path& file);

ImageSourcePtr images_below(const std::filesystem::path& folder);
CifarFilesPtr files_of(const std::filesystem::path& folder);

bool has_cifar(const CifarFiles& files);
bool is_cifar_pickle(const std::filesystem::path& file);  // by its name
bool is_idx_images(const std::filesystem::path& file);    // by its name

// The exclusive upper limit of labels: options.num_classes, else the number of labels, else no limit.
int64_t class_limit(const DatasetOptions& options);

// Class names for a format without names: the model's labels, or "0", "1", ….
std::vector<std::string> default_class_names(int64_t classes, const DatasetOptions& options);

}  // namespace vitrail::data
