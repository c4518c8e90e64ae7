// SPDX-License-Identifier: Apache-2.0
#pragma once
// The images of a run with the objective "pretrain", and the labelled ones that measure it.
#include <vector>

#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

constexpr int64_t kMinUnlabelled = 100;   // images; fewer are an error
constexpr int64_t kFewUnlabelled = 1000;  // fewer are a warning

// The images of data::open_unlabelled(recipe.train), without a cache: train, and recipe.holdout of them, by default
// data::unlabelled_holdout(), as validation, drawn by recipe.holdout_seed.  Throws Error for fewer than kMinUnlabelled
// images, and if the hold-out leaves none.
RunData open_unlabelled_sets(const DataRecipe& recipe, int64_t channels);

// The same with a cache.  Also throws Error if none of 100 images can be read, or all are copies of one, and warns of
// few images.
RunData open_unlabelled_data(const DataRecipe& recipe, int64_t channels);

// A labelled dataset whose features tell how good a model is.
struct ProbeSets {
  Subset train, evaluated;  // at most kMaxProbeImages evenly spaced images each
  int64_t classes = 0;
};
constexpr int64_t kMaxProbeImages = 10'000;

// Opens the dataset at `path`: its training images, and those of its split test, else val, else held out.  Throws Error
// as open_data(), and for images with several labels.
ProbeSets open_probe(const std::string& path, const DataRecipe& recipe, int64_t channels);

}  // namespace vitrail::train
