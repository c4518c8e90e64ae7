// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/manifest.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <mutex>
#include <utility>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/manifest_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

class RowDataset : public Dataset {
 public:
  RowDataset(Rows rows, const image::DecodeOptions& decode) : rows_(std::move(rows)), decode_(decode) {
    class_names_ = std::move(rows_.class_names);
    split_ = std::move(rows_.split);
  }
  int64_t size() const override { return std::ssize(rows_.items); }
  std::string path(int64_t i) const override { return rows_.images->path(row(i)); }
  int64_t label(int64_t i) const override {
    if (is_multi_label()) throw Error(path(i), "one label per image", "a list of several labels");
    return row(i).labels.front();
  }
  bool is_multi_label() const override { return rows_.is_multi_label; }
  std::vector<int64_t> labels(int64_t i) const override { return row(i).labels; }
  image::Image image(int64_t i) const override { return rows_.images->image(row(i), decode_); }
  int64_t content_size(int64_t i) const override { return rows_.images->content_size(row(i)); }
  uint64_t content_hash(int64_t i) const override { return rows_.images->content_hash(row(i)); }
  std::optional<int64_t> modified_at(int64_t i) const override { return rows_.images->modified_at(row(i)); }

 private:
  const Row& row(int64_t i) const { return rows_.items.at(static_cast<size_t>(i)); }

  Rows rows_;
  image::DecodeOptions decode_;
};

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

bool is_tar_name(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return extension == ".tar" || extension == ".tgz" || (extension == ".gz" && lower_extension(path.stem()) == ".tar");
}

// The files of CIFAR in `path`, or in a folder in it by the name that its archive has, as torchvision keeps it.  Null
// if there are none.  Throws Error if there are several.
CifarFilesPtr cifar_files(const fs::path& path) {
  if (CifarFilesPtr files = files_of(path); has_cifar(*files)) return files;
  std::vector<std::string> found;
  for (const char* name : {"cifar-10-batches-bin", "cifar-10-batches-py", "cifar-100-binary", "cifar-100-python"}) {
    if (is_folder(path / name) && has_cifar(*files_of(path / name))) found.push_back(name);
  }
  if (found.size() > 1) throw Error(path.string(), "one dataset", "several, name one: " + quoted_list(found));
  return found.empty() ? nullptr : files_of(path / found.front());
}

void refuse_columns(const fs::path& path, const Columns& columns, const std::string& found) {
  if (columns == Columns()) return;
  throw Error(path.string(), "a .csv, .tsv or .jsonl, or a folder with metadata.csv or .jsonl, which have columns",
              found);
}

ManifestPtr read_folder(const fs::path& path, const ManifestOptions& options) {
  if (CifarFilesPtr cifar = cifar_files(path)) {
    refuse_columns(path, options.columns, "files of CIFAR");
    return read_cifar(std::move(cifar));
  }
  FolderListing listing = walk_folder(path, options.max_entries);
  if (ManifestPtr lists = read_metadata(path, listing, options.columns)) return lists;
  refuse_columns(path, options.columns, "a folder of other files");
  if (ManifestPtr idx = read_idx_folder(path, listing)) return idx;
  return class_folder_manifest({path.string(), std::move(listing), images_below(path)});
}

char separator_named(const std::string& name) {
  if (name == "blank") return ' ';
  if (name == "comma") return ',';
  if (name == "semicolon") return ';';
  if (name.size() != 1) throw Error("columns", "separator=blank, comma, semicolon or one character", "'" + name + "'");
  return name.front();
}

}  // namespace

std::unique_ptr<Dataset> Manifest::open(const DatasetOptions& options) const {
  Rows found = rows(options);
  if (options.multi_label.value_or(found.is_multi_label) != found.is_multi_label) {
    throw Error(found.where,
                *options.multi_label ? "a dataset of several labels per image (a CSV list with labels as \"cat|dog\")"
                                     : "a dataset of one label per image",
                found.is_multi_label ? "several labels per image" : "one label per image");
  }
  return open_rows(std::move(found), options.decode);
}

std::unique_ptr<Dataset> open_rows(Rows rows, const image::DecodeOptions& decode) {
  rows.images->require_readable(rows.items);
  return std::make_unique<RowDataset>(std::move(rows), decode);
}

Columns parse_columns(const std::string& text) {
  Columns columns;
  for (size_t begin = 0, end = 0; end != text.npos && !text.empty(); begin = end + 1) {
    end = text.find(',', begin);
    const std::string part = text.substr(begin, end == text.npos ? end : end - begin);
    const size_t equals = std::min(part.find('='), part.size());
    const std::string key = part.substr(0, equals), value = part.substr(std::min(equals + 1, part.size()));
    std::string* const member = key == "file"        ? &columns.file
                                : key == "label"     ? &columns.label
                                : key == "caption"   ? &columns.caption
                                : key == "split"     ? &columns.split
                                : key == "separator" ? &columns.separator
                                                     : nullptr;
    if (member == nullptr || value.empty())
      throw Error("columns", "file=NAME, label=NAME, caption=NAME, split=NAME or separator=CHARACTER",
                  "'" + part + "'");
    *member = key == "separator" ? std::string(1, separator_named(value)) : value;
  }
  return columns;
}

int64_t class_limit(const DatasetOptions& options) {
  if (options.num_classes > 0) return options.num_classes;
  return options.labels.empty() ? INT64_MAX : static_cast<int64_t>(options.labels.size());
}

std::vector<std::string> default_class_names(int64_t classes, const DatasetOptions& options) {
  if (!options.labels.empty()) return options.labels;
  std::vector<std::string> names;
  for (int64_t i = 0; i < classes; ++i) names.push_back(std::to_string(i));
  return names;
}

struct Manifests::Read {
  std::mutex mutex;
  std::map<std::pair<fs::path, Columns>, ManifestPtr> manifests;
};

Manifests::Manifests() : read_(std::make_shared<Read>()) {}

ManifestPtr Manifests::get(const fs::path& path, const ManifestOptions& options) {
  const std::lock_guard lock(read_->mutex);  // also while it is read: others wait for the same set
  ManifestPtr& manifest = read_->manifests[{path, options.columns}];
  if (!manifest) manifest = read_manifest(path, options);
  return manifest;
}

void Manifests::clear() const {
  const std::lock_guard lock(read_->mutex);
  read_->manifests.clear();
}

ManifestPtr read_manifest(const fs::path& path, const ManifestOptions& options) {
  const PathKind kind = look_up(path);
  if (kind == PathKind::missing) throw Error(path.string(), "a dataset", "nothing at this path");
  const std::string extension = lower_extension(path);
  if (kind == PathKind::folder) return read_folder(path, options);
  if (extension == ".csv" || extension == ".tsv" || extension == ".jsonl") return read_list(path, options.columns);
  refuse_columns(path, options.columns, "a file named otherwise");
  if (extension == ".zip") return class_folder_manifest(zip_files(path));
  if (is_tar_name(path)) return read_tar_archive(path);
  if (extension == ".bin" || is_cifar_pickle(path)) return read_cifar_file(path);
  if (is_idx_images(path)) return read_idx_file(path);
  throw Error(path.string(),
              "a folder, a .zip, a .tar, a .tar.gz, a .csv, CIFAR's .bin or MNIST's idx3-ubyte[.gz] of images",
              "a file named otherwise");
}

std::unique_ptr<Dataset> open_dataset(const fs::path& path, const DatasetOptions& options) {
  return read_manifest(path)->open(options);
}

}  // namespace vitrail::data
