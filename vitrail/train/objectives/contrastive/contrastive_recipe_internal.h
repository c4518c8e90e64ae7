// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "contrastive", and what else such a recipe must say.
#include <any>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// "contrastive": the two towers of a CLIP learn from pairs of images and texts.
struct ContrastiveRecipe {
  std::string towers = "both";  // that are trained: "both" or "image"
  std::string loss{};           // "softmax" (CLIP) or "sigmoid" (SigLIP); empty: the model's own
  // WiSE-FT (Wortsman et al. 2022, arXiv 2109.01903): the saved weights are (1 − α) · start + α · trained.
  double alpha = 1;
  std::string zero_shot{};                                // a labelled dataset, on which zero-shot accuracy is measured
  std::vector<std::string> templates{"a photo of a {}"};  // texts for its class names
};

// The section of a recipe of this objective.
inline const ContrastiveRecipe& contrastive_of(const Recipe& recipe) {
  return std::any_cast<const ContrastiveRecipe&>(recipe.section);
}

void describe_contrastive_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_contrastive_recipe(const Recipe& recipe, std::vector<std::string>& problems);

constexpr double kMaxDualRate = 1e-4;  // a higher rate destroys pretrained towers
constexpr int64_t kMinDualBatch = 8;   // pairs, which are each other's negatives

// Throws Error for a rate above kMaxDualRate and a batch of all processes below kMinDualBatch.
void refuse_contrastive_risks(const Recipe& recipe, int processes);

}  // namespace vitrail::train
