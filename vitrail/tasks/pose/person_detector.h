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

struct PersonDetectorOptions {
  std::vector<std::string> classes = {};  // names or indices of those of persons; none: the class of the name "person"
  double threshold = 0.5;
  std::string option = "classes";  // the name of `classes` for errors
};

class PersonDetector {
 public:
  // Throws Error naming the option for classes that the model does not have.
  explicit PersonDetector(std::shared_ptr<const DetectionModel> model, const PersonDetectorOptions& options = {});

  const DetectionModel& model() const { return *model_; }

  // Those with a score above the threshold, of what the model has encoded of the photo.
  std::vector<PersonBox> boxes(const image::ImageView& photo, const ImageEncoding& encoding) const;

 private:
  std::shared_ptr<const DetectionModel> model_;
  std::set<int64_t> classes_;
  float threshold_;
};

}  // namespace vitrail::tasks
