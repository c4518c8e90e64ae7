// SPDX-License-Identifier: Apache-2.0
#pragma once
// The poses of the persons in an image.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/image/image.h"
#include "vitrail/tasks/pose/heat_maps.h"
#include "vitrail/tasks/pose/person_boxes.h"

namespace vitrail::tasks {

struct Pose {
  PersonBox box;
  std::vector<Keypoint> keypoints;
  std::optional<int64_t> track = {};  // the person's identity in a video

  double score() const;  // that of the box times the mean of the key points' scores
};

// What poses are drawn with.
struct Skeleton {
  std::vector<std::string> keypoints = {};         // names
  std::vector<std::array<int64_t, 2>> limbs = {};  // the key points at both ends
};

// x, y and score of each key point in f32, as COCO's "keypoints"
std::vector<double> coco_keypoints(const Pose& pose);

// COCO's results of an image, with the separator between them.
std::string coco_poses(const std::string& path, const std::vector<Pose>& poses);

// {"path", "names", "limbs": [[from, to], …], "persons": [{"label", "score", "box": [x0, y0, x1, y1], "keypoints": [[x,
// y, score], …]}]} in one line, with "track" for identities
std::string poses_json(const std::string& path, const Skeleton& skeleton, const std::vector<Pose>& poses);

// [persons, K, 3]: x, y, score
Tensor poses_array(const Skeleton& skeleton, const std::vector<Pose>& poses);

// The image in RGB with boxes, and the limbs and key points whose scores are above a threshold: blue on the left,
// orange on the right side of the person, green elsewhere.
image::Image poses_overlay(const image::Image& photo, const Skeleton& skeleton, const std::vector<Pose>& poses,
                           double threshold);

}  // namespace vitrail::tasks
