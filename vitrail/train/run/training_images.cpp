// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/training_images.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/loader/shared_images.h"
#include "vitrail/train/recipe/recipe.h"
#include "vitrail/train/recipe/recipe_inputs.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/recorded_state_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {
namespace {

namespace fs = std::filesystem;

// recipe.json in the folder, or beside it.
std::optional<fs::path> recipe_of(fs::path model) {
  if (!model.has_filename()) model = model.parent_path();
  std::error_code unknown;
  for (const fs::path& folder : {model, model.parent_path()}) {
    if (fs::is_regular_file(folder / "recipe.json", unknown)) return folder / "recipe.json";
  }
  return std::nullopt;
}

// The sets of images in the run's checkpoint; none without one, as of a probe.
std::vector<ImageSet> recorded_sets(const fs::path& run) {
  std::optional<CheckpointState> state = recorded_state(run, Checksum::ignore);
  return state ? std::move(state->image_sets) : std::vector<ImageSet>();
}

// The files and folders that folders of the run's images may have: ten times the images, because a dataset has others.
int64_t plausible_entries(const std::vector<ImageSet>& recorded) {
  constexpr int64_t kUnrecorded = 100'000, kSmall = 10'000, kLarge = 1'000'000'000;
  if (recorded.empty()) return kUnrecorded;
  int64_t images = 0;
  for (const ImageSet& set : recorded) images += std::min(set.images, kLarge);
  return std::max(10 * images, kSmall);
}

// The recipe of a foreign run may name anything.  A pipe would be waited for, and "/" would be searched for images.
void require_plausible(DataRecipe& recipe, int64_t max_entries) {
  for (const std::string& name : std::set<std::string>{recipe.train, recipe.val, recipe.test}) {
    if (name.empty()) continue;
    const fs::path path = find_dataset(name);
    std::error_code unknown;
    const fs::file_status status = fs::status(path, unknown);
    if (!fs::is_directory(status) && !fs::is_regular_file(status))
      throw Error(name, "a regular file or a folder", "something else");
    recipe.manifests.get(path, {.columns = data::parse_columns(recipe.columns), .max_entries = max_entries});
  }
}

// What is left out of the training images was said when the model was trained.
RunData sets_of(const fs::path& recipe_file, const std::vector<ImageSet>& recorded, const data::Manifests& manifests) {
  constexpr int64_t kColorChannels = 3;  // images are compared by their bytes
  const WarningPause pause;
  DataRecipe recipe = read_recipe(recipe_file).data;
  recipe.manifests = manifests;
  require_plausible(recipe, plausible_entries(recorded));
  return open_sets(recipe, kColorChannels);
}

void warn_of_changes(const RunData& data, const std::vector<ImageSet>& recorded) {
  if (recorded.empty() || recorded.front() == image_sets(data).front()) return;
  warn(str("the training images have changed since the run had ", recorded.front().images,
           ": which evaluated images it was trained on is uncertain"));
}

}  // namespace

void warn_of_training_images(const fs::path& model, const data::Dataset& dataset, const data::Manifests& manifests) {
  const std::optional<fs::path> recipe = recipe_of(model);
  if (!recipe) return;
  try {
    const std::vector<ImageSet> recorded = recorded_sets(recipe->parent_path());
    const RunData data = sets_of(*recipe, recorded, manifests);
    warn_of_changes(data, recorded);
    data::warn_of_shared_images({*data.train.dataset, data.train.samples, "training"}, {dataset, {}, "evaluated"});
  } catch (const Error& error) {
    warn(str("whether evaluated images are training images too cannot be checked: ", error.what()));
  }
}

}  // namespace vitrail::train
