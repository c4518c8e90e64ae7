// SPDX-License-Identifier: Apache-2.0
#pragma once
// Models that find objects of their own classes.
#include "vitrail/tasks/detect/detections.h"
#include "vitrail/tasks/loaded_model.h"

namespace vitrail::tasks {

class DetectionModel : public LoadedModel {
 public:
  // The objects of what encode() gave whose score is above `threshold`, the best one first.
  virtual Detections detections(const ImageEncoding& encoding, float threshold) const = 0;
  // Sets the masks of objects of detections(), if the model has them.
  virtual void add_masks(const ImageEncoding& /*encoding*/, Detections& /*detections*/) const {}

  image::ColorMode color_mode() const override { return image::ColorMode::rgb; }
};

}  // namespace vitrail::tasks
