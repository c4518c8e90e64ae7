// SPDX-License-Identifier: Apache-2.0
#pragma once
// Combination of an evaluation that several processes shared.
#include "vitrail/train/objectives/classification/evaluation_internal.h"
#include "vitrail/train/run/process_group_internal.h"

namespace vitrail::train {

// Combines the evaluations of all processes, each of its own images, to one of all images.  All processes get the same
// result.
ClassEvaluation all_gather(const ProcessGroup& group, ClassEvaluation local);

}  // namespace vitrail::train
