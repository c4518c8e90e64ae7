// SPDX-License-Identifier: Apache-2.0
#pragma once
// What identifies the images of a run, so that a resumed run can tell whether they are still the same.
#include <string>
#include <vector>

#include "vitrail/train/objectives/segmentation/segment_data_internal.h"
#include "vitrail/train/objectives/semantic/semantic_data_internal.h"
#include "vitrail/train/run/checkpoint.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {

// The training, validation and test images, each with a checksum over their files, classes and sizes in bytes; for
// segmentation, over their files.  It does not depend on the folder that all files of a set are in.
std::vector<ImageSet> image_sets(const RunData& data);
std::vector<ImageSet> image_sets(const SegmentData& data);
std::vector<ImageSet> image_sets(const SemanticData& data);

// The name of the validation images among the sets.
inline constexpr const char* kValidationSet = "validation";

// A line "\n  validation images: 44 → 20" if the set of this name differs; empty if it is the same, or if the
// checkpoint has none of the name.
std::string change_of_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now,
                             const std::string& name);

// Warns if sets of a checkpoint differ from those of now.  An older checkpoint has none, which tells nothing.
void warn_of_other_images(const std::vector<ImageSet>& before, const std::vector<ImageSet>& now);

}  // namespace vitrail::train
