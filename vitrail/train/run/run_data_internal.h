// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datasets of a run: training, validation and test images.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/loader/loader.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// A subset of the samples of a dataset.
struct Subset {
  std::shared_ptr<const data::Dataset> dataset;  // null: the subset does not exist
  std::vector<int64_t> samples;                  // indices in the dataset; empty: all
  std::string name;                              // for messages: "5,000 images held out of …"
  int64_t size() const;
};

struct RunData {
  Subset train, validation, test;
  std::vector<std::string> classes;  // names by index; "0", "1", … if the dataset has none
  bool multi_label = false;          // whether images have several labels
};

// Opens the datasets of a recipe.
// - train: the split "train", or all images if there are no splits.
// - validation: the split "val" of `recipe.val`, or all of its images if there are no splits.
// - If `recipe.val` has only the split "test", as CIFAR and MNIST, that is the test set.
// - Without a validation set, `recipe.holdout` training images are held out for validation; default:
//   data::default_holdout.  With one, `recipe.holdout` turns it into the test set.
// Images that are in two of the sets are a warning with their number, and so are classes without training images.
// `channels`: 1 reads greyscale images, 3 RGB.  Throws Error as data::open_dataset, for fewer than two classes, if
// the hold-out leaves no training images, and if none of 100 training images can be read.
RunData open_data(const DataRecipe& recipe, int64_t channels);

// The same without these warnings and without reading images, and without a cache.
RunData open_sets(const DataRecipe& recipe, int64_t channels);

// Throws Error naming `path` if none of 100 training images, evenly spaced, can be read.
void require_readable_images(const Subset& train, const std::string& path);

}  // namespace vitrail::train
