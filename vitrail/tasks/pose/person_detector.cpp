// SPDX-License-Identifier: Apache-2.0
#include "vitrail/tasks/pose/person_detector.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/text.h"

namespace vitrail::tasks {
namespace {

std::set<int64_t> person_classes(const PersonDetectorOptions& options, const std::vector<std::string>& names) {
  if (!options.classes.empty()) return class_indices(options.classes, names, options.option);
  const std::string person = PersonBox().label;
  if (std::ranges::find(names, person) != names.end()) return class_indices({person}, names);
  constexpr size_t kShown = 10;
  throw Error(options.option, "those of persons, of the detector's " + join_first(kShown, names),
              "none of the name person");
}

}  // namespace

PersonDetector::PersonDetector(std::shared_ptr<const DetectionModel> model, const PersonDetectorOptions& options)
    : model_(std::move(model)),
      classes_(person_classes(options, model_->class_names())),
      threshold_(static_cast<float>(options.threshold)) {}

std::vector<PersonBox> PersonDetector::boxes(const image::ImageView& photo, const ImageEncoding& encoding) const {
  std::vector<PersonBox> boxes;
  for (const Detection& each : model_->detections(encoding, threshold_)) {
    const double left = each.box[0], top = each.box[1], width = each.box[2] - left, height = each.box[3] - top;
    const PersonBox person{
        .box = {left, top, width, height}, .score = each.score, .label = each.label, .category = each.index};
    const bool has_area = width > 0 && height > 0;
    if (classes_.contains(each.index) && has_area && overlaps(person, photo)) boxes.push_back(person);
  }
  return boxes;
}

}  // namespace vitrail::tasks
