// SPDX-License-Identifier: Apache-2.0
#include "vitrail/sam/instance_dataset.h"

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/sam/instance_datasets_internal.h"

namespace vitrail::sam {

namespace fs = std::filesystem;

std::unique_ptr<const InstanceDataset> open_instances(const fs::path& path, const std::string& split) {
  std::error_code error;
  std::unique_ptr<const InstanceDataset> dataset;
  if (fs::is_directory(path, error)) {
    const bool has_split = !split.empty() && fs::is_directory(path / split, error);
    dataset = open_instance_folder(has_split ? path / split : path);
  } else if (path.extension() == ".json") {
    dataset = open_coco_instances(path);
  } else {
    throw Error(path.string(), "a folder of images and their masks, or a COCO annotation file (.json)",
                fs::exists(path, error) ? "another file" : "nothing");
  }
  if (dataset->size() == 0) {
    throw Error(
        path.string(), "images with masks",
        dataset->left_out().images > 0 ? counted(dataset->left_out().images, "image") + " without masks" : "none");
  }
  return dataset;
}

std::string summary(const InstanceDataset& dataset, const std::string& name) {
  std::vector<std::string> left_out;
  const auto add = [&](int64_t count, const char* noun, const char* without = "") {
    if (count > 0) left_out.push_back(counted(count, noun) + without);
  };
  add(dataset.left_out().images, "image", " without masks");
  add(dataset.left_out().crowds, "crowd annotation");
  add(dataset.left_out().without_mask, "annotation", " without a mask");
  return str(counted(dataset.size(), "image"), " of ", name,
             left_out.empty() ? "" : " (left out: " + join(left_out) + ")");
}

}  // namespace vitrail::sam
