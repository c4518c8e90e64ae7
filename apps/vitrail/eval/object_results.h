// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of results in COCO's JSON (cocodataset.org, "Results format").
#include <filesystem>

#include "apps/vitrail/eval/object_evaluation.h"

namespace vitrail::app {

struct ObjectResults {
  ObjectKinds kinds;                             // what all results have
  std::vector<std::vector<FoundObject>> images;  // in the order of the set's
};

// Throws Error naming the result for a malformed value, and for an image or a category that the set does not have.
ObjectResults read_object_results(const std::filesystem::path& path, const data::ObjectSet& set);

}  // namespace vitrail::app
