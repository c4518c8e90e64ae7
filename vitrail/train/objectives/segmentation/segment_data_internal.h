// SPDX-License-Identifier: Apache-2.0
#pragma once
// The datasets of a run with the objective "segment".
#include "vitrail/sam/instance_dataset.h"
#include "vitrail/train/objectives/split_sets_internal.h"

namespace vitrail::train {

using SegmentData = SplitSets<sam::InstanceDataset>;

// Opens the datasets of a recipe: the folder's split train, val and test if it has them, else all of it.  Without a
// validation set, recipe.holdout training images are held out (by default data::default_holdout), drawn by
// recipe.holdout_seed.  Throws Error as sam::open_instances(), and if the hold-out leaves no training images.
SegmentData open_segment_data(const DataRecipe& recipe);

}  // namespace vitrail::train
