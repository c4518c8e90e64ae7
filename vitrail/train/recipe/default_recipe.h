// SPDX-License-Identifier: Apache-2.0
#pragma once
// A recipe for a dataset without one: the settings that the field uses for sets of its size.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

enum class Preset { finetune, probe, scratch };
Preset preset_from_name(const std::string& name);  // throws Error

struct DefaultRecipe {
  Recipe recipe;
  // What was chosen and why, a line each: "batch size 8, for at least 10 steps in an epoch of 120 images".
  std::vector<std::string> reasons;
  models::VisionTransformerConfig architecture;  // the model's, with the classes of the dataset
  int64_t training_images = 0, validation_images = 0;
  bool is_frozen = false;  // the model's layers but for the head
  double head_cost = 0;    // the time of the head in a training step, relative to the model's without it
};

struct DefaultRecipeOptions {
  std::string data{};       // the dataset, as DataRecipe::train
  std::string model{};      // the model to start from, unless from scratch; empty: the bundled model
  std::string columns{};    // DataRecipe::columns
  std::string objective{};  // empty: that of `settings`, else dataset_objective()
  // Settings that the caller overrides the recipe with.  Others follow from some of them: the warm-up and the patience
  // from "epochs"; of a dataset of label maps, the learning rate from the head in "semantic".
  std::vector<std::string> settings{};
  Preset preset = Preset::finetune;
  std::optional<int64_t> epochs{};  // unset: from the number of images
  bool cross_validated = false;  // for cross_validate(): no images are held out, and no epoch ends the training early
  // Chooses the epochs instead, from the architecture, the batch size and the numbers of images.
  std::function<int64_t(const DefaultRecipe&)> choose_epochs{};
  // The recipe of a run that is resumed: its epochs, patience and warm-up stay.  They cannot be chosen again, because a
  // time limit may have reduced the epochs after the others followed from them.
  std::optional<Recipe> resumed{};
};

// Chooses the recipe for a dataset.  Its splits val and test are used where it has them; otherwise images are held out
// (data::default_holdout).  Throws Error as data::open_dataset and models::open_model do.
//
// Fine-tuning: AdamW with layer-wise rate decay (Bao et al. 2022, BEiT), cosine schedule after a warm-up, label
// smoothing, random resized crops and flips (padded crops for small inputs), and early stopping; with few images the
// head of a linear probe at first (Kumar et al. 2022, LP-FT), and a second training on all images at last.
// Linear probe: logistic regression on all training images.
// A dataset of label maps: a head for the pixels on frozen or fine-tuned features.  Frozen ones are the linear probe.
// A dataset of boxes: an RF-DETR, or its projector and decoder on a Vision Transformer.
// Pairs of images and texts: a dual model, whose batches are as large as images and memory allow.
// Images without labels, with the objective "pretrain": the method that suits their number and the preset.
DefaultRecipe default_recipe(const DefaultRecipeOptions& options);

// The objective that a dataset is for: "semantic" if it has label maps (is_map_dataset) or is of COCO's form with
// masks, "detect" for other sets of objects (data::is_object_set), "contrastive" for pairs of images and texts
// (data::is_pair_set), else "classify".
std::string dataset_objective(const std::string& data);

}  // namespace vitrail::train
