// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/train/objectives/objective.h"
#include "vitrail/train/run/run_internal.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
  std::error_code error;
  return fs::weakly_canonical(fs::absolute(path, error), error);
}

// Files of a run do not belong among images.  A folder of its own below them is no class, and a run that is there may
// go on.
void require_folder_outside(const DataRecipe& data, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder / "checkpoints", error) || !fs::exists(folder, error) || fs::is_empty(folder, error)) return;
  const fs::path run = resolved(folder);
  for (const std::string& path : {data.train, data.val, data.test}) {
    if (!fs::is_directory(path, error)) continue;  // none, or an archive or a list
    const fs::path images = resolved(path);
    if (std::mismatch(images.begin(), images.end(), run.begin(), run.end()).first == images.end())
      throw Error(folder.string(), "a folder outside of the images in " + path, "one among them");
  }
}

// What an objective does not support is an error in this one place.
void require_supported(const ObjectiveRow& objective, const Recipe& recipe, const TrainerOptions& options) {
  if (options.time_limit > 0 && objective.solves)
    throw Error("time_limit", "none for the objective \"" + objective.name + "\"", str(options.time_limit, " seconds"));
  const int processes = options.communicator ? options.communicator->size() : 1;
  if (processes > 1 && !objective.several_processes)
    throw Error("objective", "one process for \"" + objective.name + "\"", str(processes, " processes"));
  if (objective.refuse_risks && !options.force) objective.refuse_risks(recipe, processes);
}

}  // namespace

TrainingResult train(const ObjectiveRow& objective, const Recipe& recipe, const TrainerOptions& options,
                     const TrainerCallbacks& callbacks) {
  require_supported(objective, recipe, options);
  require_folder_outside(recipe.data, options.folder);
  const int threads = options.threads > 0 ? options.threads : available_threads();
  const ComputeTeam team(threads);
  return Run(objective, recipe, options, callbacks, threads).run();
}

TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  return train(objective_of(recipe), recipe, options, callbacks);
}

}  // namespace vitrail::train
