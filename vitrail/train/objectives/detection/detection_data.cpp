// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/detection/detection_data_internal.h"

#include <algorithm>
#include <numeric>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"
#include "vitrail/train/objectives/holdout_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

// The names of a split in datasets.
std::vector<std::string> object_split_names(const std::string& split) {
  if (split == "train") return {"train", "training"};
  if (split == "val") return {"val", "valid", "validation"};
  return {"test", "testing"};
}

std::shared_ptr<const ObjectDataset> open_object_split(const std::string& path, const std::string& asked,
                                                       const char* split, std::string& name) {
  if (path.empty()) return nullptr;
  data::ObjectSetOptions options{.split = asked};
  if (asked.empty()) options.default_splits = object_split_names(split);
  data::ObjectSet set = data::open_object_set(find_dataset(path), options);
  name = str(counted(std::ssize(set.images), "image"), " of ", path);
  return std::make_shared<ObjectDataset>(std::move(set));
}

void require_classes(const ObjectData& data, const std::shared_ptr<const ObjectDataset>& set, const std::string& name) {
  if (set && set->class_names() != data.classes)
    throw Error(name, "the classes of the training images: " + join(data.classes), join(set->class_names()));
}

}  // namespace

ObjectDataset::ObjectDataset(data::ObjectSet set)
    : set_(std::make_shared<const data::ObjectSet>(std::move(set))), images_(set_->images.size()) {
  std::iota(images_.begin(), images_.end(), int64_t{0});
}

ObjectDataset::ObjectDataset(const std::shared_ptr<const ObjectDataset>& dataset, std::vector<int64_t> images)
    : set_(dataset->set_), images_(std::move(images)) {
  for (int64_t& image : images_) image = static_cast<int64_t>(dataset->at(image));
}

std::vector<data::LabelledObject> ObjectDataset::objects(int64_t image, int64_t width, int64_t height) const {
  return data::objects_of(*set_, at(image), width, height);
}

ObjectData open_object_data(const DataRecipe& recipe) {
  ObjectData data;
  data.train = open_object_split(recipe.train, recipe.train_split, "train", data.train_name);
  data.validation = open_object_split(recipe.val, recipe.val_split, "val", data.validation_name);
  data.test = open_object_split(recipe.test, recipe.test_split, "test", data.test_name);
  data.samples.resize(static_cast<size_t>(data.train->size()));
  std::iota(data.samples.begin(), data.samples.end(), int64_t{0});
  data.classes = data.train->class_names();
  require_classes(data, data.validation, data.validation_name);
  require_classes(data, data.test, data.test_name);
  hold_out<ObjectDataset>(recipe, data);
  return data;
}

std::vector<std::string> object_splits(const std::filesystem::path& path) {
  const std::vector<std::string> present = data::object_set_splits(path);
  std::vector<std::string> splits;
  for (const char* split : {"train", "val", "test"}) {
    const std::vector<std::string> names = object_split_names(split);
    const auto is_of_split = [&](const std::string& name) {
      return std::ranges::any_of(names, [&](const std::string& start) { return name.starts_with(start); });
    };
    if (std::ranges::any_of(present, is_of_split)) splits.emplace_back(split);
  }
  return splits;
}

}  // namespace vitrail::train
