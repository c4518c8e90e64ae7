// SPDX-License-Identifier: Apache-2.0
#pragma once
// Parts of default_recipe().
#include <any>
#include <string>
#include <vector>

#include "vitrail/train/recipe/default_recipe.h"

namespace vitrail::train {

// An objective's section with the settings of it that are given, from which others follow.
template <class Section>
Section with_given_settings(const std::string& objective, const Section& section, const DefaultRecipeOptions& options) {
  std::vector<std::string> settings;
  for (const std::string& setting : options.settings) {
    if (setting.starts_with(objective + ".") || setting.starts_with(objective + "=")) settings.push_back(setting);
  }
  const Recipe recipe{.objective = objective,
                      .model = {.init = options.model},
                      .data = {.train = options.data},
                      .epochs = 1,
                      .section = section};
  return std::any_cast<Section>(with_overrides(recipe, options.data, settings).section);
}

// The value of the last setting of a field ("epochs"), without quotes; empty if there is none.
std::string given_setting(const DefaultRecipeOptions& options, const std::string& field);

// Whether the settings ask for LoRA.  lora_rate(): the factor of the learning rate, since low-rank parts start at 0 and
// need larger steps than pretrained weights.  lora_reason(): its reason for the user.
bool asks_for_lora(const DefaultRecipeOptions& options);
double lora_rate(const DefaultRecipeOptions& options);
std::string lora_reason(const DefaultRecipeOptions& options);

// The model to start from.
void set_start(const DefaultRecipeOptions& options, DefaultRecipe& result);

// A power of two from 4 to max_batch, unless there are fewer images.
int64_t batch_size_for(int64_t images, int64_t max_batch = 64);

// The epochs, the warm-up and the patience, from the numbers of images.
void choose_epochs(const DefaultRecipeOptions& options, DefaultRecipe& result);

// Why there are so many epochs, and what ends them.
std::string epochs_reason(const DefaultRecipeOptions& options, int64_t steps);
std::string end_text(const DefaultRecipeOptions& options, const DefaultRecipe& chosen);

// The recipe of a dataset of label maps, that of a dataset of boxes, that of images without labels, and that of pairs.
DefaultRecipe map_recipe(const DefaultRecipeOptions& options);
DefaultRecipe box_recipe(const DefaultRecipeOptions& options);
DefaultRecipe pretrain_recipe(const DefaultRecipeOptions& options);
DefaultRecipe contrastive_recipe(const DefaultRecipeOptions& options);

}  // namespace vitrail::train
