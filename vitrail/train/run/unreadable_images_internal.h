// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a run says about images that cannot be read and that its recipe lets pass.
#include <set>
#include <string>

#include "vitrail/data/loader/loader.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

class UnreadableImages {
 public:
  // Warns of the first training images that were skipped, by name.
  void add(const Subset& train, const data::Batch& batch);

  // Throws Error if no training image of a class can be read: the model would not learn it.  Reads images of classes
  // that no batch has shown.
  void require_classes(const RunData& data, const DataRecipe& recipe);

  // Warns once of images of another set that an evaluation left out.
  void add_left_out(const Subset& subset, int64_t count);

 private:
  std::set<int64_t> training_;      // samples that were skipped
  std::set<int64_t> read_classes_;  // labels of images that were read
  std::set<std::string> told_;      // names of sets
};

}  // namespace vitrail::train
