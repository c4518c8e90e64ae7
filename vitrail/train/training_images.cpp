// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/training_images.h"

#include <optional>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/data/shared_images.h"
#include "vitrail/train/checkpoint_internal.h"
#include "vitrail/train/image_sets_internal.h"
#include "vitrail/train/recipe.h"
#include "vitrail/train/run_data_internal.h"

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

// What is left out of the training images was said when the model was trained.
RunData sets_of(const fs::path& recipe) {
  constexpr int64_t kColorChannels = 3;  // images are compared by their bytes
  const WarningPause pause;
  return open_sets(read_recipe(recipe).data, kColorChannels);
}

// The sets of images in the run's checkpoint; none without one, as of a probe.
std::vector<ImageSet> recorded_sets(const fs::path& run) {
  try {
    const weights::Checkpoint file = weights::Checkpoint::open(run / "checkpoints/last.safetensors");
    return read_checkpoint(file, Checksum::ignore).image_sets;
  } catch (const Error&) {
    return {};
  }
}

void warn_of_changes(const RunData& data, const std::vector<ImageSet>& recorded) {
  if (recorded.empty() || recorded.front() == image_sets(data).front()) return;
  warn(str("the training images have changed since the run had ", recorded.front().images,
           ": which evaluated images it was trained on is uncertain"));
}

}  // namespace

void warn_of_training_images(const fs::path& model, const data::Dataset& dataset) {
  const std::optional<fs::path> recipe = recipe_of(model);
  if (!recipe) return;
  try {
    const RunData data = sets_of(*recipe);
    warn_of_changes(data, recorded_sets(recipe->parent_path()));
    data::warn_of_shared_images({*data.train.dataset, data.train.samples, "training"}, {dataset, {}, "evaluated"});
  } catch (const Error& error) {
    warn(str("whether evaluated images are training images too cannot be checked: ", error.what()));
  }
}

}  // namespace vitrail::train
