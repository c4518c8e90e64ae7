// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "vitrail/train/objectives/objective.h"

namespace vitrail::train {

// The datasets of a run.
template <class Dataset>
struct SplitSets {
  std::shared_ptr<const Dataset> train{}, validation{}, test{};  // null: no such set
  std::vector<int64_t> samples{};                                // training images
  std::string train_name{}, validation_name{}, test_name{};      // for messages

  const std::shared_ptr<const Dataset>& of(Split split) const {
    return split == Split::training ? train : split == Split::validation ? validation : test;
  }
  // The number of images and the name of a split, as Objective has them.
  int64_t size(Split split) const {
    if (split == Split::training) return std::ssize(samples);
    return of(split) ? of(split)->size() : 0;
  }
  std::string name(Split split) const {
    return split == Split::training ? train_name : split == Split::validation ? validation_name : test_name;
  }
};

}  // namespace vitrail::train
