// SPDX-License-Identifier: Apache-2.0
#pragma once
// Confusion of classes: objects by their class and that of their detection.
#include "vitrail/analysis/coco_metrics.h"

namespace vitrail::analysis {

class DetectionConfusion {
 public:
  explicit DetectionConfusion(int64_t categories);

  struct Errors {
    int64_t right = 0;     // objects that are detected with their class
    int64_t confused = 0;  // with another class
    int64_t missed = 0;    // objects without a detection
    int64_t wrong = 0;     // detections without an object

    int64_t count() const { return confused + missed + wrong; }
  };

  // An object and a detection belong together if they overlap by at least ½; pairs of one class come first, then those
  // with a larger overlap.  Objects that do not count, and detections that belong to them alone, are left out.
  Errors add(std::span<const CocoTruth> truths, std::span<const CocoDetection> detections, const CocoOverlap& overlap);

  // [categories + 1][categories + 1]: objects by their class and that of their detection; the last is none.
  const std::vector<std::vector<int64_t>>& counts() const { return counts_; }

 private:
  std::vector<std::vector<int64_t>> counts_;
};

}  // namespace vitrail::analysis
