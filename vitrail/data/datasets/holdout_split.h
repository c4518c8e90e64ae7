// SPDX-License-Identifier: Apache-2.0
#pragma once
// Stratified split of a dataset into training and held-out samples.
#include <cstdint>
#include <vector>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

struct HoldoutSplit {
  std::vector<int64_t> train, held_out;  // sorted indices
};

// Each class gives held-out samples in proportion to its size (largest remainders, ties by class index), chosen by the
// seed, and keeps at least one for training where `held_out` allows it.  Samples with several labels count as one
// class.  Throws Error unless 0 ≤ held_out < dataset size.
HoldoutSplit holdout_split(const Dataset& dataset, int64_t held_out, uint64_t seed);

// Parts the samples into `folds` folds for cross-validation, in each class evenly and at random by the seed.  Fold
// `fold`, from 0, is held out.  Throws Error unless 0 ≤ fold < folds ≤ dataset size and folds ≥ 2.
HoldoutSplit fold_split(const Dataset& dataset, int64_t folds, int64_t fold, uint64_t seed);

// How many of `images` images to hold out: a fifth, or 20 for each class if that is more, at most a third and 5,000.
int64_t default_holdout(int64_t images, int64_t classes);

}  // namespace vitrail::data
