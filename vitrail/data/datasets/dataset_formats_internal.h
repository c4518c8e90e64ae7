// SPDX-License-Identifier: Apache-2.0
#pragma once
// The formats that open_dataset (dataset.h) chooses from, and what they share.  Errors as documented there.
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

std::unique_ptr<Dataset> open_class_folders(const std::filesystem::path& folder, const DatasetOptions& options);
std::unique_ptr<Dataset> open_class_archive(const std::filesystem::path& zip, const DatasetOptions& options);
std::unique_ptr<Dataset> open_csv(const std::filesystem::path& csv, const DatasetOptions& options);
std::unique_ptr<Dataset> open_tar(const std::filesystem::path& tar, const DatasetOptions& options);
// `path`: one file, or a folder of them.
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& path, const DatasetOptions& options);
// `path`: one images file, or a folder.
std::unique_ptr<Dataset> open_idx(const std::filesystem::path& path, const DatasetOptions& options);

// The splits of a folder or archive of class folders, of a list, of CIFAR's files, and of IDX files.
std::vector<std::string> class_folder_splits(const std::filesystem::path& folder);
std::vector<std::string> class_archive_splits(const std::filesystem::path& zip);
std::vector<std::string> tar_splits(const std::filesystem::path& tar);
std::vector<std::string> csv_splits(const std::filesystem::path& csv);
std::vector<std::string> cifar_splits(const std::filesystem::path& folder);
std::vector<std::string> idx_splits(const std::filesystem::path& folder);

// The one of the splits `existing` (train, val, test) that the options ask for.  Throws Error if it does not exist.
std::string choose_standard_split(const std::filesystem::path& path, const DatasetOptions& options,
                                  const std::vector<std::string>& existing);

bool is_cifar_folder(const std::filesystem::path& folder);
bool is_cifar_pickle(const std::filesystem::path& file);  // by its name
bool is_idx_folder(const std::filesystem::path& folder);
bool is_idx_images(const std::filesystem::path& file);  // by its name

// The exclusive upper limit of labels: options.num_classes, else the number of labels, else no limit.
int64_t class_limit(const DatasetOptions& options);

// Class names for a format without names: the model's labels, or "0", "1", ….
std::vector<std::string> default_class_names(int64_t classes, const DatasetOptions& options);

// Throws Error if a split was named for a single file, which has none.
void require_no_split(const std::filesystem::path& path, const DatasetOptions& options);

}  // namespace vitrail::data
