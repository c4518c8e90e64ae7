// SPDX-License-Identifier: Apache-2.0
#pragma once
// The forms that a dataset comes in; open_dataset (dataset.h) chooses among them.  Errors as it says.
#include "vitrail/data/dataset.h"

namespace vitrail::data {

std::unique_ptr<Dataset> open_class_folders(const std::filesystem::path& folder, const DatasetOptions& options);
std::unique_ptr<Dataset> open_class_archive(const std::filesystem::path& zip, const DatasetOptions& options);
std::unique_ptr<Dataset> open_csv(const std::filesystem::path& csv, const DatasetOptions& options);
// One .bin, or a folder of them.
std::unique_ptr<Dataset> open_cifar(const std::filesystem::path& path, const DatasetOptions& options);
// One file of images, or a folder.
std::unique_ptr<Dataset> open_idx(const std::filesystem::path& path, const DatasetOptions& options);

bool is_cifar_folder(const std::filesystem::path& folder);
bool is_idx_folder(const std::filesystem::path& folder);
bool is_idx_images(const std::filesystem::path& file);  // by its name

// Whether something is there, or a folder is; a path that may not be looked at counts as absent.
bool is_present(const std::filesystem::path& path);
bool is_folder(const std::filesystem::path& path);

// The classes that a label may take: options.num_classes, else the number of labels, else no limit.
int64_t class_limit(const DatasetOptions& options);

// "0", "1", … or the model's labels: the names of classes that a format only numbers.
std::vector<std::string> numbered_names(int64_t classes, const DatasetOptions& options);

// Throws Error when a split was named for a single file, which has none.
void require_no_split(const std::filesystem::path& path, const DatasetOptions& options);

}  // namespace vitrail::data
