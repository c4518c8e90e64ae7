// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_data_internal.h"

#include <algorithm>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/train/objectives/holdout_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

// Some images of a dataset.
class InstanceSubset : public sam::InstanceDataset {
 public:
  InstanceSubset(std::shared_ptr<const sam::InstanceDataset> dataset, std::vector<int64_t> images)
      : dataset_(std::move(dataset)), images_(std::move(images)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::filesystem::path path(int64_t image) const override { return dataset_->path(at(image)); }
  std::vector<sam::Rle> masks(int64_t image, int64_t width, int64_t height) const override {
    return dataset_->masks(at(image), width, height);
  }

 private:
  int64_t at(int64_t image) const { return images_.at(static_cast<size_t>(image)); }

  std::shared_ptr<const sam::InstanceDataset> dataset_;
  std::vector<int64_t> images_;
};

std::shared_ptr<const sam::InstanceDataset> open_split(const std::string& path, const std::string& asked,
                                                       const char* split, std::string& name) {
  if (path.empty()) return nullptr;
  std::shared_ptr<const sam::InstanceDataset> dataset =
      sam::open_instances(find_dataset(path), asked.empty() ? split : asked);
  name = sam::summary(*dataset, path);
  return dataset;
}

}  // namespace

SegmentData open_segment_data(const DataRecipe& recipe) {
  SegmentData data;
  data.train = open_split(recipe.train, recipe.train_split, "train", data.train_name);
  data.validation = open_split(recipe.val, recipe.val_split, "val", data.validation_name);
  data.test = open_split(recipe.test, recipe.test_split, "test", data.test_name);
  data.samples.resize(static_cast<size_t>(data.train->size()));
  std::iota(data.samples.begin(), data.samples.end(), int64_t{0});
  hold_out<InstanceSubset>(recipe, data);
  return data;
}

}  // namespace vitrail::train
