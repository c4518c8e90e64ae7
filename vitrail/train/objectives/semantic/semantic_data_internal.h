// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datasets of a run with the objective "semantic".
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/train/objectives/split_sets_internal.h"

namespace vitrail::train {

// Images with a class for each pixel.  Const functions are thread-safe.
class MapDataset {
 public:
  virtual ~MapDataset() = default;
  virtual int64_t size() const = 0;  // images, at least 1
  virtual std::filesystem::path path(int64_t image) const = 0;
  virtual std::filesystem::path labels_path(int64_t image) const = 0;  // for messages
  // The labels of an image of width × height pixels, row by row.  Throws Error naming the file for a map of another
  // size and for one that cannot be read.
  virtual std::vector<int32_t> labels(int64_t image, int64_t width, int64_t height) const = 0;
  virtual std::vector<std::string> class_names() const = 0;  // empty if it names none
};

struct SemanticData : SplitSets<MapDataset> {
  std::vector<std::string> classes{};  // names by label; "0", "1", … if there are none
};

// Opens the datasets of a recipe, folders as is_map_dataset() says or COCO's JSON files: the split train, val and test
// if a set has splits, else all of it.  The names of the classes are those of the recipe, else COCO's categories behind
// "background", else the lines of FOLDER/classes.txt, else the numbers from 0 to the highest label of the training
// images.  Without a validation set, recipe.holdout training images are held out (by default data::default_holdout),
// drawn by recipe.holdout_seed.  Throws Error as data::open_label_map_set() and sam::open_instances(), if the hold-out
// leaves no training images, and for fewer than two classes.
SemanticData open_semantic_data(const Recipe& recipe);

// The splits of a dataset of label maps: those of train, val and test that it has.
std::vector<std::string> semantic_splits(const std::filesystem::path& path);

// Whether a path is such a dataset: a folder with images beside one with maps, as data::open_label_map_set() reads it,
// or a folder with COCO's annotations/instances_SPLIT….json or with instances.json.
bool is_map_dataset(const std::filesystem::path& path);

}  // namespace vitrail::train
