// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/train/probe.h"
#include "vitrail/train/run_internal.h"
#include "vitrail/train/segment_run.h"

namespace vitrail::train {

TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  if (options.time_limit > 0 && recipe.objective != "classify")
    throw Error("time_limit", "none for the objective \"" + recipe.objective + "\"",
                str(options.time_limit, " seconds"));
  if (recipe.objective == "probe") return train_probe(recipe, options, callbacks);
  if (recipe.objective == "segment") return train_segment(recipe, options, callbacks);
  const int threads = options.threads > 0 ? options.threads : available_threads();
  const ComputeTeam team(threads);
  return Run(recipe, options, callbacks, threads).run();
}

}  // namespace vitrail::train
