// SPDX-License-Identifier: Apache-2.0
#include "vitrail/data/dataset.h"

#include <algorithm>
#include <cctype>

#include "vitrail/base/error.h"
#include "vitrail/data/dataset_formats_internal.h"

namespace vitrail::data {
namespace fs = std::filesystem;
namespace {

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return extension;
}

}  // namespace

bool is_present(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
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

void require_no_split(const fs::path& path, const DatasetOptions& options) {
  if (!options.split.empty()) throw Error(path.string(), "a dataset with a split " + options.split, "a single file");
}

std::unique_ptr<Dataset> open_dataset(const fs::path& path, const DatasetOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw Error(path.string(), "a dataset", error ? error.message() : "nothing at this path");
  if (fs::is_directory(status)) {
    if (is_cifar_folder(path)) return open_cifar(path, options);
    if (is_idx_folder(path)) return open_idx(path, options);
    return open_class_folders(path, options);
  }
  const std::string extension = lower_extension(path);
  if (extension == ".zip") return open_class_archive(path, options);
  if (extension == ".csv") return open_csv(path, options);
  if (extension == ".bin") return open_cifar(path, options);
  if (is_idx_images(path)) return open_idx(path, options);
  throw Error(path.string(), "a folder, a .zip, a .csv, CIFAR's .bin or MNIST's idx3-ubyte[.gz] of images",
              "a file named otherwise");
}

}  // namespace vitrail::data
