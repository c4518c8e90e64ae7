// SPDX-License-Identifier: Apache-2.0
#pragma once
// vitrail explain RUN [IMAGE…]: the learning page of a training run.
#include <string>
#include <vector>

#include "apps/vitrail/shell/common.h"
#include "vitrail/explain/explain.h"

namespace vitrail::app {

struct RunPageInput {
  std::string run;                  // the folder
  std::vector<std::string> images;  // that are followed; empty: four that the run held out
  bool apply_exif = false;
};

// Shows the progress.  Throws Error as explain::explain_run(), and without images for a run without labelled held-out
// images.
explain::LearningPage run_page(const RunPageInput& input, const explain::ExplainOptions& options,
                               const GlobalOptions& global);

}  // namespace vitrail::app
