// SPDX-License-Identifier: Apache-2.0
#pragma once
// eval of object detectors and pose estimators, and of their results in a file, on sets of objects.
#include "apps/vitrail/families/family.h"
#include "vitrail/tasks/detect/detection_model.h"
#include "vitrail/tasks/pose/pose_model.h"

namespace vitrail::app {

int evaluate_detector(const tasks::DetectionModel& model, const NamedModel& named, const EvalCommandOptions& options,
                      const GlobalOptions& global);

// The persons are those with key points in the set, or those that --detector finds.
int evaluate_poses(const tasks::PoseModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

// --detections
int evaluate_results(const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
