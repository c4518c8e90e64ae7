// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/datasets/dataset.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "vitrail/base/error.h"
#include "vitrail/base/file_lookup_internal.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/class_matching_internal.h"
#include "vitrail/data/datasets/dataset_formats_internal.h"
#include "vitrail/data/datasets/split_names_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

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

bool is_list_name(const fs::path& path) {
  const std::string extension = lower_extension(path);
  return extension == ".csv" || extension == ".tsv";
}

}  // namespace

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

void require_no_split(const fs::path& path, const DatasetOptions& options) {
  if (!options.split.empty() && options.split != kNoSplit)
    throw Error(path.string(), "a dataset with a split " + options.split, "a single file");
}

std::string choose_standard_split(const fs::path& path, const DatasetOptions& options,
                                  const std::vector<std::string>& existing) {
  const auto exists = [&](std::string_view split) {
    return std::find(existing.begin(), existing.end(), split) != existing.end();
  };
  std::vector<std::string> wanted = options.default_splits;
  if (!options.split.empty()) wanted = {options.split};
  for (const std::string& split : wanted) {
    const std::string_view canonical = canonical_split(split);
    if (exists(canonical)) return std::string(canonical);
  }
  throw Error(path.string(), "a split " + join(wanted, " or "), "these splits: " + join(existing));
}

namespace {

// The folder of CIFAR's files: `path`, or a folder in it by the name that its archive has, as torchvision keeps it.
// Empty if there is none.  Throws Error if there are several.
fs::path cifar_folder(const fs::path& path) {
  if (is_cifar_folder(path)) return path;
  std::vector<std::string> found;
  for (const char* name : {"cifar-10-batches-bin", "cifar-10-batches-py", "cifar-100-binary", "cifar-100-python"}) {
    if (is_folder(path / name) && is_cifar_folder(path / name)) found.push_back(name);
  }
  if (found.size() > 1) throw Error(path.string(), "one dataset", "several, name one: " + quoted_list(found));
  return found.empty() ? "" : path / found.front();
}

std::unique_ptr<Dataset> open_format(const fs::path& path, const DatasetOptions& options) {
  const PathKind kind = look_up(path);
  if (kind == PathKind::missing) throw Error(path.string(), "a dataset", "nothing at this path");
  if (kind == PathKind::folder) {
    if (const fs::path cifar = cifar_folder(path); !cifar.empty()) return open_cifar(cifar, options);
    if (is_idx_folder(path)) return open_idx(path, options);
    return open_class_folders(path, options);
  }
  const std::string extension = lower_extension(path);
  if (extension == ".zip") return open_class_archive(path, options);
  if (is_list_name(path)) return open_csv(path, options);
  if (is_tar_name(path)) return open_tar(path, options);
  if (extension == ".bin" || is_cifar_pickle(path)) return open_cifar(path, options);
  if (is_idx_images(path)) return open_idx(path, options);
  throw Error(path.string(),
              "a folder, a .zip, a .tar, a .tar.gz, a .csv, CIFAR's .bin or MNIST's idx3-ubyte[.gz] of images",
              "a file named otherwise");
}

}  // namespace

std::unique_ptr<Dataset> open_dataset(const fs::path& path, const DatasetOptions& options) {
  std::unique_ptr<Dataset> dataset = open_format(path, options);
  if (options.multi_label.value_or(dataset->is_multi_label()) == dataset->is_multi_label()) return dataset;
  throw Error(path.string(),
              *options.multi_label ? "a dataset of several labels per image (a CSV list with labels as \"cat|dog\")"
                                   : "a dataset of one label per image",
              dataset->is_multi_label() ? "several labels per image" : "one label per image");
}

std::vector<std::string> dataset_splits(const fs::path& path) {
  if (is_folder(path)) {
    if (const fs::path cifar = cifar_folder(path); !cifar.empty()) return cifar_splits(cifar);
    return is_idx_folder(path) ? idx_splits(path) : class_folder_splits(path);
  }
  if (is_list_name(path)) return csv_splits(path);
  if (is_tar_name(path)) return tar_splits(path);
  return lower_extension(path) == ".zip" ? class_archive_splits(path) : std::vector<std::string>();
}

std::string summary(const Dataset& dataset, const std::string& path) {
  constexpr size_t kListed = 10;
  std::set<int64_t> labels;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    for (const int64_t label : dataset.labels(i)) labels.insert(label);
  }
  std::string text = str(dataset.size(), dataset.size() == 1 ? " image of " : " images of ", path);
  if (!dataset.split().empty()) text += (path.ends_with('/') ? "" : "/") + dataset.split();
  if (dataset.is_multi_label()) text += ", with several labels each";
  text += str(", ", labels.size(), labels.size() == 1 ? " class: " : " classes: ");
  return text + join_first(kListed, labels, ", ", [&](int64_t label) {
           const auto index = static_cast<size_t>(label);
           return index < dataset.class_names().size() ? dataset.class_names()[index] : std::to_string(label);
         });
}

}  // namespace vitrail::data
