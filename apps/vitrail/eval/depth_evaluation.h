// SPDX-License-Identifier: Apache-2.0
#pragma once
// eval of a depth estimator.
#include "apps/vitrail/families/family.h"

namespace vitrail::app {

// On a folder of images and measured depth: images/NAME.* and depth/NAME.png (16-bit grey, in millimetres, 0 unknown)
// or depth/NAME.npy (metres).  Its row of the families.
int evaluate_depth(const NamedModel& model, const EvalCommandOptions& options, const GlobalOptions& global);

}  // namespace vitrail::app
