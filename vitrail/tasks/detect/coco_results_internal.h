// SPDX-License-Identifier: Apache-2.0
#pragma once
// Files of results in COCO's JSON (cocodataset.org, "Results format"): a list of records of all images.
#include <nlohmann/json.hpp>
#include <string>

#include "vitrail/tasks/task.h"

namespace vitrail::tasks {

constexpr const char* kCocoSeparator = ",\n";
constexpr const char* kCocoTrack = "track_id";  // an object's identity in a video, as in sets of videos (TAO)

FileKind coco_results_kind();

// The name of an image's file without its extension, as a number if it is one, as those of COCO.
nlohmann::ordered_json coco_image_id(const std::string& path);

}  // namespace vitrail::tasks
