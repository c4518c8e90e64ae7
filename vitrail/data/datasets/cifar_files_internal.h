// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to the files of CIFAR: in a folder on disk, or in a folder of an archive.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/datasets/cifar_batch_internal.h"
#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

class CifarFiles {
 public:
  virtual ~CifarFiles() = default;
  virtual bool has(const std::string& name) const = 0;  // a regular file
  virtual CifarFile open(const std::string& name) const = 0;
  virtual std::filesystem::path path() const = 0;  // for messages
};

bool are_cifar_files(const CifarFiles& files);
std::vector<std::string> cifar_splits(const CifarFiles& files);
std::unique_ptr<Dataset> open_cifar(const CifarFiles& files, const DatasetOptions& options);

}  // namespace vitrail::data
