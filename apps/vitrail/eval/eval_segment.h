// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of Segment Anything on images with instance masks.
#include <string>

#include "apps/vitrail/shell/common.h"

namespace vitrail::app {

struct SegmentEvaluationOptions {
  std::string model, dataset, split;
  bool exif = false, json = false;
};

// Prints the mean IoU for a click, three clicks and a box.  Unreadable images are errors on the way, and are counted.
int evaluate_segmentation(const SegmentEvaluationOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
