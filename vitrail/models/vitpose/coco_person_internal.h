// SPDX-License-Identifier: Apache-2.0
#pragma once
// COCO's key points of a person.
#include <array>
#include <string>
#include <vector>

namespace vitrail::models {

inline constexpr int64_t kCocoKeypoints = 17;
const std::vector<std::string>& coco_keypoints();         // "nose", "left_eye", …
const std::vector<std::array<int64_t, 2>>& coco_limbs();  // the skeleton of its annotations

}  // namespace vitrail::models
