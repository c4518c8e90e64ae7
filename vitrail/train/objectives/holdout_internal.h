// SPDX-License-Identifier: Apache-2.0
#pragma once
// Images held out of a training set for validation.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "vitrail/base/error.h"
#include "vitrail/data/datasets/holdout_split.h"
#include "vitrail/data/loader/sampler_internal.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// Moves recipe.holdout of data.samples into data.validation, a Subset of data.train (by default
// data::default_holdout(), none beside a validation set), drawn by recipe.holdout_seed, and names both.  Throws Error
// if no training image would be left, and beside a validation set.
template <class Subset, class Data>
void hold_out(const DataRecipe& recipe, Data& data) {
  const int64_t size = data.train->size();
  const int64_t count = recipe.holdout.value_or(data.validation ? 0 : data::default_holdout(size, 1));
  if (count >= size) throw Error("data.holdout", str("fewer than the ", size, " training images"), str(count));
  if (count == 0) return;
  if (data.validation) throw Error("data.holdout", "0 together with data.val", str(count));
  const std::vector<int64_t> order = data::epoch_order(data.samples, true, recipe.holdout_seed, 0);
  std::vector<int64_t> held_out(order.begin(), order.begin() + count);
  data.samples.assign(order.begin() + count, order.end());
  std::ranges::sort(held_out);
  std::ranges::sort(data.samples);
  data.validation = std::make_shared<Subset>(data.train, std::move(held_out));
  data.validation_name = str(count, " images held out of ", recipe.train);
  data.train_name = str(size - count, " of ", data.train_name);
}

}  // namespace vitrail::train
