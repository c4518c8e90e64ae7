// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <sstream>

#include "vitrail/base/error.h"
#include "vitrail/base/read_file.h"
#include "vitrail/base/text.h"
#include "vitrail/data/datasets/label_map_set.h"
#include "vitrail/image/label_image.h"
#include "vitrail/sam/instance_dataset.h"
#include "vitrail/train/objectives/holdout_internal.h"
#include "vitrail/train/objectives/semantic/semantic_recipe_internal.h"
#include "vitrail/train/recipe/recipe_inputs.h"

namespace vitrail::train {
namespace {

constexpr const char* kClassNames = "classes.txt";

bool is_folder(const std::filesystem::path& path) {
  std::error_code unreadable;
  return std::filesystem::is_directory(path, unreadable);
}

// Some images of a dataset.
class MapSubset : public MapDataset {
 public:
  MapSubset(std::shared_ptr<const MapDataset> dataset, std::vector<int64_t> images)
      : dataset_(std::move(dataset)), images_(std::move(images)) {}

  int64_t size() const override { return static_cast<int64_t>(images_.size()); }
  std::filesystem::path path(int64_t image) const override { return dataset_->path(at(image)); }
  std::filesystem::path labels_path(int64_t image) const override { return dataset_->labels_path(at(image)); }
  std::vector<int32_t> labels(int64_t image, int64_t width, int64_t height) const override {
    return dataset_->labels(at(image), width, height);
  }
  std::vector<std::string> class_names() const override { return dataset_->class_names(); }

 private:
  int64_t at(int64_t image) const { return images_.at(static_cast<size_t>(image)); }

  std::shared_ptr<const MapDataset> dataset_;
  std::vector<int64_t> images_;
};

// The names of a split in datasets.
std::vector<std::string> split_names(const std::string& split) {
  if (split == "train") return {"train", "training"};
  if (split == "val") return {"val", "validation"};
  return {"test", "testing"};
}

// A name in each line; empty lines at the end do not count.
std::vector<std::string> names_in(const std::filesystem::path& file) {
  std::vector<std::string> names;
  std::istringstream lines(read_text_file(file));
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();
    names.push_back(line);
  }
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

// A PNG of class indices for each image.
class PngMaps : public MapDataset {
 public:
  PngMaps(const std::filesystem::path& folder, const std::vector<std::string>& splits, const SemanticRecipe& recipe)
      : set_(data::open_label_map_set(folder, splits)),
        reading_{.ignored = static_cast<int32_t>(recipe.ignored), .reduce_labels = recipe.reduce_labels} {
    const std::filesystem::path names = folder / kClassNames;
    std::error_code unreadable;
    if (std::filesystem::exists(names, unreadable)) names_ = names_in(names);
  }

  int64_t size() const override { return std::ssize(set_.samples); }
  std::filesystem::path path(int64_t image) const override { return at(image).image; }
  std::filesystem::path labels_path(int64_t image) const override { return at(image).labels; }
  std::vector<int32_t> labels(int64_t image, int64_t width, int64_t height) const override {
    return data::read_label_map(at(image).labels, width, height, reading_);
  }
  std::vector<std::string> class_names() const override { return names_; }

 private:
  const data::LabelMapSet::Sample& at(int64_t image) const { return set_.samples.at(static_cast<size_t>(image)); }

  data::LabelMapSet set_;
  data::LabelMapReading reading_;
  std::vector<std::string> names_;
};

// COCO's masks as maps: class 0 is what no mask covers, and smaller objects are above larger ones.
class CocoMaps : public MapDataset {
 public:
  explicit CocoMaps(const std::filesystem::path& file) : instances_(sam::open_instances(file)) {
    if (instances_->class_names().empty()) throw Error(file.string(), "the list \"categories\"", "none");
  }

  int64_t size() const override { return instances_->size(); }
  std::filesystem::path path(int64_t image) const override { return instances_->path(image); }
  std::filesystem::path labels_path(int64_t image) const override { return instances_->path(image); }
  std::vector<int32_t> labels(int64_t image, int64_t width, int64_t height) const override {
    std::vector<sam::ClassMask> masks = instances_->class_masks(image, width, height);
    std::ranges::stable_sort(masks, std::greater(), [](const sam::ClassMask& each) { return sam::area(each.mask); });
    std::vector<int32_t> labels(static_cast<size_t>(width * height));
    for (const auto& [mask, index] : masks) {
      const sam::BinaryMask pixels = sam::decode(mask);
      for (size_t i = 0; i < labels.size(); ++i) {
        if (pixels.pixels[i] != 0) labels[i] = static_cast<int32_t>(index + 1);
      }
    }
    return labels;
  }
  std::vector<std::string> class_names() const override {
    std::vector<std::string> names = instances_->class_names();
    names.insert(names.begin(), "background");
    return names;
  }

 private:
  std::unique_ptr<const sam::InstanceDataset> instances_;
};

// The first of FOLDER/annotations/instances_SPLIT*.json in the order of names, or FOLDER/instances.json; empty: none.
std::filesystem::path coco_file(const std::filesystem::path& folder, const std::vector<std::string>& splits) {
  std::error_code unreadable;
  std::vector<std::filesystem::path> files;
  std::filesystem::directory_iterator entry(folder / "annotations", unreadable);
  for (; entry != std::filesystem::directory_iterator(); entry.increment(unreadable)) {
    const std::string name = entry->path().filename().string();
    const bool wanted =
        std::ranges::any_of(splits, [&](const std::string& split) { return name.starts_with("instances_" + split); });
    if (wanted && name.ends_with(".json")) files.push_back(entry->path());
  }
  if (!files.empty()) return std::ranges::min(files);
  const std::filesystem::path all = folder / "instances.json";
  return std::filesystem::is_regular_file(all, unreadable) ? all : std::filesystem::path();
}

std::shared_ptr<const MapDataset> open_maps(const std::filesystem::path& path, const std::vector<std::string>& splits,
                                            const SemanticRecipe& recipe) {
  if (!is_folder(path)) return std::make_shared<CocoMaps>(path);
  const std::filesystem::path coco = coco_file(path, splits);
  if (!coco.empty()) return std::make_shared<CocoMaps>(coco);
  return std::make_shared<PngMaps>(path, splits, recipe);
}

std::shared_ptr<const MapDataset> open_map_split(const std::string& path, const std::string& asked, const char* split,
                                                 const SemanticRecipe& recipe, std::string& name) {
  if (path.empty()) return nullptr;
  const std::vector<std::string> splits = asked.empty() ? split_names(split) : std::vector{asked};
  std::shared_ptr<const MapDataset> dataset = open_maps(find_dataset(path), splits, recipe);
  name = str(counted(dataset->size(), "image"), " of ", path);
  return dataset;
}

// The highest label of the maps; −1 without any.
int64_t highest_label(const MapDataset& dataset, const SemanticRecipe& recipe) {
  int64_t highest = -1;
  for (int64_t i = 0; i < dataset.size(); ++i) {
    const image::LabelImage map = image::read_labels(dataset.labels_path(i));
    for (const int32_t label : map.labels) {
      if (label != recipe.ignored) highest = std::max<int64_t>(highest, label);
    }
  }
  return recipe.reduce_labels ? highest - 1 : highest;
}

std::vector<std::string> class_names_of(const MapDataset& train, const SemanticRecipe& recipe,
                                        const std::string& path) {
  constexpr size_t kMaxClasses = 255;  // maps have 8 bits in training
  std::vector<std::string> names = recipe.classes;
  if (names.empty()) names = train.class_names();
  if (names.empty()) {
    const int64_t highest = highest_label(train, recipe);
    for (int64_t i = 0; i <= std::min<int64_t>(highest, kMaxClasses); ++i) names.push_back(std::to_string(i));
  }
  if (names.size() < 2 || names.size() > kMaxClasses)
    throw Error(path, str("maps of 2 to ", kMaxClasses, " classes"),
                names.size() < 2 ? counted(std::ssize(names), "class") : "more");
  return names;
}

}  // namespace

SemanticData open_semantic_data(const Recipe& recipe) {
  const SemanticRecipe& semantic = semantic_of(recipe);
  const DataRecipe& sets = recipe.data;
  SemanticData data;
  data.train = open_map_split(sets.train, sets.train_split, "train", semantic, data.train_name);
  data.validation = open_map_split(sets.val, sets.val_split, "val", semantic, data.validation_name);
  data.test = open_map_split(sets.test, sets.test_split, "test", semantic, data.test_name);
  data.samples.resize(static_cast<size_t>(data.train->size()));
  std::iota(data.samples.begin(), data.samples.end(), int64_t{0});
  data.classes = class_names_of(*data.train, semantic, sets.train);
  hold_out<MapSubset>(sets, data);
  return data;
}

std::vector<std::string> semantic_splits(const std::filesystem::path& path) {
  std::vector<std::string> splits;
  for (const char* split : {"train", "val", "test"}) {
    const std::vector<std::string> names = split_names(split);
    const bool found = std::ranges::any_of(names, [&](const std::string& name) {
      return is_folder(path / "images" / name) || is_folder(path / "img_dir" / name);
    });
    const std::filesystem::path coco = coco_file(path, names);
    if (found || coco.parent_path() == path / "annotations") splits.emplace_back(split);
  }
  return splits;
}

bool is_map_dataset(const std::filesystem::path& path) {
  if (!coco_file(path, {""}).empty()) return true;
  const auto has_one = [&](const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const std::string& name) { return is_folder(path / name); });
  };
  return has_one({"images", "img_dir"}) && has_one({"labels", "annotations", "ann_dir", "masks"});
}

}  // namespace vitrail::train
