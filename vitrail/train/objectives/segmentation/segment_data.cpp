// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/segmentation/segment_data_internal.h"

#include <algorithm>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/holdout_split.h"
#include "vitrail/data/loader/sampler_internal.h"
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

void hold_out(const DataRecipe& recipe, SegmentData& data) {
  const int64_t size = data.train->size();
  const int64_t count = recipe.holdout.value_or(data.validation ? 0 : data::default_holdout(size, 1));
  if (count >= size) {
    throw Error("data.holdout", str("fewer than the ", size, " training images"), str(count));
  }
  if (count == 0) return;
  if (data.validation) throw Error("data.holdout", "0 together with data.val", str(count));
  const std::vector<int64_t> order = data::epoch_order(data.samples, true, recipe.holdout_seed, 0);
  std::vector<int64_t> held_out(order.begin(), order.begin() + count);
  data.samples.assign(order.begin() + count, order.end());
  std::ranges::sort(held_out);
  std::ranges::sort(data.samples);
  data.validation = std::make_shared<InstanceSubset>(data.train, std::move(held_out));
  data.validation_name = str(count, " images held out of ", recipe.train);
  data.train_name = str(size - count, " of ", data.train_name);
}

}  // namespace

SegmentData open_segment_data(const DataRecipe& recipe) {
  SegmentData data;
  data.train = open_split(recipe.train, recipe.train_split, "train", data.train_name);
  data.validation = open_split(recipe.val, recipe.val_split, "val", data.validation_name);
  data.test = open_split(recipe.test, recipe.test_split, "test", data.test_name);
  data.samples.resize(static_cast<size_t>(data.train->size()));
  std::iota(data.samples.begin(), data.samples.end(), int64_t{0});
  hold_out(recipe, data);
  return data;
}

}  // namespace vitrail::train
