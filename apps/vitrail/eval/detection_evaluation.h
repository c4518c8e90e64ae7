// SPDX-License-Identifier: Apache-2.0
#pragma once
// eval of object detectors, and of their results in a file, on sets of objects.
#include "apps/vitrail/families/family.h"
#include "vitrail/tasks/detect/detection_model.h"

namespace vitrail::app {

int evaluate_detector(const tasks::DetectionModel& model, const NamedModel& named, const EvalCommandOptions& options,
                      const GlobalOptions& global);

// --detections
int evaluate_results(const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
