// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/training_images.h"

#include <optional>

#include "vitrail/base/callbacks.h"
#include "vitrail/base/error.h"
#include "vitrail/data/shared_images.h"
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
std::optional<RunData> sets_of(const fs::path& recipe) {
  constexpr int64_t kColorChannels = 3;  // images are compared by their bytes
  const WarningCallback warnings = set_warning_callback({});
  std::optional<RunData> data;
  try {
    data = open_sets(read_recipe(recipe).data, kColorChannels);
  } catch (const Error&) {  // moved or changed since
  }
  set_warning_callback(warnings);
  return data;
}

}  // namespace

void warn_of_training_images(const fs::path& model, const data::Dataset& dataset) {
  const std::optional<fs::path> recipe = recipe_of(model);
  if (!recipe) return;
  const std::optional<RunData> data = sets_of(*recipe);
  if (!data) return;
  data::warn_of_shared_images({*data->train.dataset, data->train.samples, "training"}, {dataset, {}, "evaluated"});
}

}  // namespace vitrail::train
