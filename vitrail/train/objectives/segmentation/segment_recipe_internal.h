// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "segment", and what else such a recipe must say.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// "segment": training of Segment Anything (Kirillov et al. 2023).
struct SegmentRecipe {
  int64_t image_size = 0;      // sides of the model's input in pixels; 0: those of model.init, or of the architecture
  bool train_encoder = false;  // else the image encoder's blocks are frozen, and what they compute is cached
  // These shape a new model; a model.init with a mask decoder keeps its own.
  int64_t window = 0;        // attention in windows of window × window patches; 0: of all patches
  int64_t global_every = 3;  // with windows: every how many blocks one attends to all patches
  int64_t decoder_dim = 256, decoder_depth = 2, decoder_mlp = 2048;

  int64_t prompts = 4;     // masks of an image that a batch has prompts of
  int64_t rounds = 3;      // prompts of a mask: the first one, and others with a correction click more
  double box_share = 0.5;  // share of boxes among first prompts; the others are clicks
  double focal_weight = 20, dice_weight = 1, iou_weight = 1;  // weights of the losses
  double focal_alpha = 0.25, focal_gamma = 2;                 // ops::FocalOptions
  // Folder of the frozen blocks' outputs, which several runs may share; empty: in the run's folder.
  std::string cache{};
};

// The section of a recipe of this objective.
inline SegmentRecipe& segment_of(Recipe& recipe) { return std::any_cast<SegmentRecipe&>(recipe.section); }
inline const SegmentRecipe& segment_of(const Recipe& recipe) {
  return std::any_cast<const SegmentRecipe&>(recipe.section);
}

void describe_segment_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_segment_recipe(const Recipe& recipe, std::vector<std::string>& problems);

// The splits of a dataset of instance masks: those of train, val and test that are folders.
std::vector<std::string> segment_splits(const std::filesystem::path& path);

}  // namespace vitrail::train
