// SPDX-License-Identifier: Apache-2.0
#pragma once
// Boxes of persons by an object detector.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/pose/person_boxes.h"

namespace vitrail::tasks {

class PersonDetector {
 public:
  static constexpr double kThreshold = 0.5;

  // classes: names or indices of those whose objects are persons; none: the class of the name "person".  Throws Error
  // naming the option "classes".
  explicit PersonDetector(std::shared_ptr<const DetectionModel> model, const std::vector<std::string>& classes = {},
                          double threshold = kThreshold);

  // Those with a score above the threshold.
  std::vector<PersonBox> boxes(const image::ImageView& photo) const;

 private:
  std::shared_ptr<const DetectionModel> model_;
  std::set<int64_t> classes_;
  float threshold_;
};

}  // namespace vitrail::tasks
