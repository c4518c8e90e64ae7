// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datasets of a run with the objective "segment".
#include <memory>
#include <string>
#include <vector>

#include "vitrail/sam/instance_dataset.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

struct SegmentData {
  std::shared_ptr<const sam::InstanceDataset> train, validation, test;  // null: no such set
  std::vector<int64_t> samples;                                         // training images
  std::string train_name, validation_name, test_name;                   // for messages
};

// Opens the datasets of a recipe: the folder's split train, val and test if it has them, else all of it.  Without a
// validation set, recipe.holdout training images are held out (by default data::default_holdout), drawn by
// recipe.holdout_seed.  Throws Error as sam::open_instances(), and if the hold-out leaves no training images.
SegmentData open_segment_data(const DataRecipe& recipe);

}  // namespace vitrail::train
