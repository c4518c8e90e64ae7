// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/vitpose/coco_person_internal.h"

namespace vitrail::models {

const std::vector<std::string>& coco_keypoints() {
  static const std::vector<std::string> names{
      "nose",           "left_eye",   "right_eye",   "left_ear",   "right_ear",   "left_shoulder",
      "right_shoulder", "left_elbow", "right_elbow", "left_wrist", "right_wrist", "left_hip",
      "right_hip",      "left_knee",  "right_knee",  "left_ankle", "right_ankle"};
  return names;
}

const std::vector<std::array<int64_t, 2>>& coco_limbs() {
  static const std::vector<std::array<int64_t, 2>> limbs{
      {15, 13}, {13, 11}, {16, 14}, {14, 12}, {11, 12}, {5, 11}, {6, 12}, {5, 6}, {5, 7}, {6, 8},
      {7, 9},   {8, 10},  {1, 2},   {0, 1},   {0, 2},   {1, 3},  {2, 4},  {3, 5}, {4, 6}};
  return limbs;
}

}  // namespace vitrail::models
