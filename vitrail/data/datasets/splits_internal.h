// SPDX-License-Identifier: Apache-2.0
#pragma once
// The names of splits, and the choice of one.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "vitrail/data/datasets/dataset.h"

namespace vitrail::data {

// "train", "val" or "test" for a split's name; empty for any other name.  Case, '-', '_' and spaces are ignored, and so
// is an ending such as "set", "data" or "images": Training, test_set, VAL-images.  Synonyms are training and trn;
// valid, validation, validate, dev, development, eval, evaluation and holdout; testing and tst.
std::string_view canonical_split(std::string_view name);

// The split that a word of the name stands for, as in seg_train, train2017, imagenet-val or TestB, or "fold" for a fold
// of a cross-validation; empty without one.  Words end at characters that are no letters, and before a capital letter
// that follows a small one.
std::string_view resembled_split(std::string_view name);

// The split option that says that a set has no splits: its folders are the classes, whatever their names.
inline constexpr std::string_view kNoSplit = ".";

// The splits of a set.
struct Splits {
  std::string where{};                            // the set, for messages
  std::vector<std::string> existing{};            // as the set has them
  std::map<std::string, std::string> unusable{};  // those without images, and what is there instead
};

// The split that the options ask for: of its exact name, or else of another name for it.  Without a request, the first
// of the default splits that exists; empty if there are no splits.  Throws Error if it does not exist, is unusable, or
// has several names.
std::string choose_split(const Splits& splits, const DatasetOptions& options);

}  // namespace vitrail::data
