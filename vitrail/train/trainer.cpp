// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/trainer.h"

#include <algorithm>

#include "vitrail/base/error.h"
#include "vitrail/base/parallel.h"
#include "vitrail/train/objectives/probe.h"
#include "vitrail/train/objectives/segment_run.h"
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

}  // namespace

TrainingResult train(const Recipe& recipe, const TrainerOptions& options, const TrainerCallbacks& callbacks) {
  if (options.time_limit > 0 && recipe.objective != "classify")
    throw Error("time_limit", "none for the objective \"" + recipe.objective + "\"",
                str(options.time_limit, " seconds"));
  require_folder_outside(recipe.data, options.folder);
  if (recipe.objective == "probe") return train_probe(recipe, options, callbacks);
  if (recipe.objective == "segment") return train_segment(recipe, options, callbacks);
  const int threads = options.threads > 0 ? options.threads : available_threads();
  const ComputeTeam team(threads);
  return Run(recipe, options, callbacks, threads).run();
}

}  // namespace vitrail::train
