// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images of a run: what is trained on, what chooses the best weights, and what is looked at once.
#include <memory>
#include <string>
#include <vector>

#include "vitrail/data/loader.h"
#include "vitrail/train/recipe.h"

namespace vitrail::train {

// Some samples of a dataset; empty: none.
struct Part {
  std::shared_ptr<const data::Dataset> dataset;  // null: there is no such part
  std::vector<int64_t> samples;                  // empty: all
  std::string name;                              // for people: "5,000 images held out of …"
  int64_t size() const;
};

struct RunData {
  Part train, validation, test;
  std::vector<std::string> classes;  // by index; numbers where the data names none
};

// Opens what "data" names.  Of `train` the split "train", where there are splits.  `val` is read after each epoch: its
// split "val" or, without splits, all of it.  Where it has only a test split, it is the test set, and held-out training
// images choose the best weights: `holdout` of them, by default a tenth but at most 5,000; so too without `val`.
// Throws Error as open_dataset, for fewer than two classes, and for a hold-out that leaves nothing.
// `channels`: 1 reads grey pictures, 3 colour.
RunData open_data(const DataRecipe& recipe, int64_t channels);

}  // namespace vitrail::train
