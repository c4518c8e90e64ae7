// SPDX-License-Identifier: Apache-2.0
#pragma once
// Weights of the classes in the loss, and the numbers of images that they follow from.
#include "vitrail/tensor/tensor.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// f32 [classes]: the recipe's weights, or with "inverse_frequency" those of scikit-learn's class_weight="balanced":
// n / (C · n_c) for n training images, n_c of class c, and C classes with images; 0 for a class without images.
// Undefined if the recipe has none.  Throws Error for another number of weights than classes.
Tensor class_weights(const LossRecipe& recipe, const RunData& data);

// The number of images of each class in a subset.
std::vector<int64_t> class_counts(const Subset& subset, size_t classes);

// "training images of each class: cat 20, dog 21", or of many classes the smallest and the largest: "training images of
// each class: 5 (cat) to 100 (dog)".
std::string class_counts_text(const RunData& data);

}  // namespace vitrail::train
