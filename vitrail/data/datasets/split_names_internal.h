// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names under which datasets have their splits.
#include <string_view>

namespace vitrail::data {

// "train", "val" or "test" for a split's name; empty for any other name.  Case, '-', '_' and spaces are ignored, and so
// is an ending such as "set", "data" or "images": Training, test_set, VAL-images.  Synonyms are training and trn;
// valid, validation, validate, dev, development, eval, evaluation and holdout; testing and tst.
std::string_view canonical_split(std::string_view name);

// The split that a word of the name stands for, as in seg_train, train2017, imagenet-val or TestB; empty without one.
// Words end at characters that are no letters, and before a capital letter that follows a small one.
std::string_view resembled_split(std::string_view name);

// Whether the name is that of a fold for cross-validation: fold1, Fold_2.
bool is_fold_name(std::string_view name);

// The split option that says that a dataset has no splits: its folders are the classes, whatever their names.
inline constexpr std::string_view kNoSplit = ".";

}  // namespace vitrail::data
