// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datasets of a run with the objective "detect".
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/objects/object_set.h"
#include "vitrail/train/objectives/split_sets_internal.h"

namespace vitrail::train {

// Images with objects.  Const functions are thread-safe.
class ObjectDataset {
 public:
  explicit ObjectDataset(data::ObjectSet set);
  // Some images of a dataset.
  ObjectDataset(const std::shared_ptr<const ObjectDataset>& dataset, std::vector<int64_t> images);

  int64_t size() const { return std::ssize(images_); }
  std::filesystem::path path(int64_t image) const { return set_->images[at(image)].path; }
  // The objects of an image of width × height pixels.  Throws Error as data::objects_of().
  std::vector<data::LabelledObject> objects(int64_t image, int64_t width, int64_t height) const;
  const std::vector<std::string>& class_names() const { return set_->class_names; }

 private:
  size_t at(int64_t image) const { return static_cast<size_t>(images_.at(static_cast<size_t>(image))); }

  std::shared_ptr<const data::ObjectSet> set_;
  std::vector<int64_t> images_;
};

struct ObjectData : SplitSets<ObjectDataset> {
  std::vector<std::string> classes{};
};

// Opens the datasets of a recipe, those of data::open_object_set(): the split train, val and test if a set has splits,
// else all of it.  Without a validation set, recipe.holdout training images are held out (by default
// data::default_holdout), drawn by recipe.holdout_seed.  Throws Error as data::open_object_set(), if the hold-out
// leaves no training images, and for sets with other classes than those of the training images.
ObjectData open_object_data(const DataRecipe& recipe);

// The splits of a dataset of objects: those of train, val and test that it has.
std::vector<std::string> object_splits(const std::filesystem::path& path);

}  // namespace vitrail::train
