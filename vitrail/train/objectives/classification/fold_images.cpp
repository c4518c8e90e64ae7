// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/objectives/classification/fold_images_internal.h"

#include <algorithm>
#include <string>

#include "vitrail/base/error.h"
#include "vitrail/base/warning_pause_internal.h"
#include "vitrail/train/run/image_sets_internal.h"
#include "vitrail/train/run/recorded_state_internal.h"
#include "vitrail/train/run/run_data_internal.h"

namespace vitrail::train {
namespace {

std::vector<ImageSet> sets_now(const DataRecipe& recipe) {
  constexpr int64_t kColors = 3;  // no image is decoded
  const WarningPause pause;       // train() opens them, too
  return image_sets(open_sets(recipe, kColors));
}

// Whether the recipes differ in the data, for example in the number of folds.
bool have_other_data(const std::string& before, const std::string& now) {
  return std::ranges::any_of(recipe_differences(before, now),
                             [](const std::string& line) { return line.starts_with("data."); });
}

}  // namespace

void check_images_of_folds(const std::filesystem::path& folder, const std::vector<Recipe>& recipes,
                           bool allow_changes) {
  for (size_t i = 0; i < recipes.size(); ++i) {
    const auto state = recorded_state(folder / "folds" / std::to_string(i + 1), Checksum::verify);
    if (!state || state->image_sets.empty()) continue;
    if (!allow_changes && have_other_data(state->recipe, write_recipe(recipes[i]))) continue;
    for (const ImageSet& now : sets_now(recipes[i].data)) {
      const auto before = std::ranges::find(state->image_sets, now.name, &ImageSet::name);
      if (before == state->image_sets.end() || *before == now) continue;
      throw Error(folder.string(),
                  str("the ", before->images, " ", now.name, " images that fold ", i + 1, " was trained with"),
                  str(now.images == before->images ? "others" : str(now.images),
                      "; begin the cross-validation again in another folder"));
    }
  }
}

}  // namespace vitrail::train
