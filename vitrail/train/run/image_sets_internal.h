// SPDX-License-Identifier: Apache-2.0
#pragma once
// What identifies the images of a run, so that a resumed run can tell whether they are still the same.
#include <functional>
#include <string>
#include <vector>

#include "vitrail/train/objectives/split_sets_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// The training, validation and test images, each with a checksum over their files, classes and sizes in bytes; of sets
// with masks, maps or boxes, over their files.  It does not depend on the folder that all files of a set are in.
std::vector<ImageSet> image_sets(const RunData& data);

// A set of files with these paths.
ImageSet image_set(const std::string& name, int64_t images, const std::function<std::string(int64_t)>& path_of);

// The name of the validation images among the sets.
inline constexpr const char* kValidationSet = "validation";

template <class Dataset>
std::vector<ImageSet> image_sets(const SplitSets<Dataset>& data) {
  const auto whole = [](const char* name, const auto& dataset) {
    return image_set(name, dataset ? dataset->size() : 0, [&](int64_t i) { return dataset->path(i).string(); });
  };
  const auto path_of_sample = [&](int64_t i) {
    return data.train->path(data.samples[static_cast<size_t>(i)]).string();
  };
  return {image_set("training", std::ssize(data.samples), path_of_sample), whole(kValidationSet, data.validation),
          whole("test", data.test)};
}

// A line "\n  validation images: 44 → 20" if the set of this name differs; empty if it is the same, or if the
// checkpoint has none of the name.
std::string change_of_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now,
                             const std::string& name);

// Warns if sets of a checkpoint differ from those of now.  An older checkpoint has none, which tells nothing.
void warn_of_other_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now);

}  // namespace vitrail::train
