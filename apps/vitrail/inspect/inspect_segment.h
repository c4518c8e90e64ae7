// SPDX-License-Identifier: Apache-2.0
#pragma once
// `vitrail inspect` of Segment Anything.
#include <string>

#include "apps/vitrail/inspect/inspect_values.h"

namespace vitrail::app {

struct SegmentInspection {
  std::string model;  // a registered architecture or a path
  bool tree = false, keys = false;
  ValueOptions values;
};

// Prints the summary, or what the options ask for.  --trace is a pass over an image and a click at its centre.
void inspect_segmentation(const SegmentInspection& options, bool quiet);

}  // namespace vitrail::app
