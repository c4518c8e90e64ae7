// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that find objects of their own classes.
#include <set>
#include <string>
#include <vector>

#include "vitrail/tasks/detect/detections.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

constexpr const char* kDetectors = "an object detector (RF-DETR, LW-DETR, YOLOS)";  // Task::model

class DetectionModel : public LoadedModel {
 public:
  // The objects of what encode() gave whose score is above `threshold`, the best one first.
  virtual Detections detections(const ImageEncoding& encoding, float threshold) const = 0;
  virtual bool gives_masks() const { return false; }
  // Sets the masks of objects of detections(), if the model has them.
  virtual void add_masks(const ImageEncoding& /*encoding*/, Detections& /*detections*/) const {}

  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
};

// The indices of classes by their names, which several may share, or by numbers.  Throws Error naming the option.
std::set<int64_t> class_indices(const std::vector<std::string>& texts, const std::vector<std::string>& names,
                                const std::string& option = "classes");

}  // namespace vitrail::tasks
