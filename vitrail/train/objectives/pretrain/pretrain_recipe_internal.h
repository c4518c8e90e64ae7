// SPDX-License-Identifier: Apache-2.0
#pragma once
// The section of a recipe of the objective "pretrain", and what else such a recipe must say.
#include <any>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "vitrail/base/fields.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// "pretrain": learning from images without labels.
struct PretrainRecipe {
  std::string method = "diet";  // the name of a PretrainMethodRow
  // A labelled dataset.  k nearest neighbours and a linear probe on it tell how good the features are.  Empty: none.
  std::string probe{};
  double head_lr = 1e-3;      // peak learning rate of the layers that are no part of the model
  std::string keep = "best";  // the weights that model/ has: "best" or "last"

  // lejepa and dino: views of each image in a batch.  Scales are shares of the image's area.
  int64_t global_views = 2, local_views = 6;
  std::array<double, 2> global_scale{0.3, 1}, local_scale{0.05, 0.3};
  int64_t local_size = 0;        // side of local views in pixels; 0: 3/7 of the image, in whole patches
  int64_t projector_dim = 2048;  // hidden width of the projector, or of DINO's head

  // lejepa
  std::string regularizer = "sigreg";  // the name: "sigreg" or "visreg"
  std::optional<double> lambda{};      // weight of the regulariser; unset: 0.02 for sigreg, 0.6 for visreg
  int64_t directions = 1024;           // directions that the regulariser draws in each step
  int64_t projection_dim = 64;

  // mae
  double mask_ratio = 0.75;
  bool norm_pix = true;                        // predict the pixels of each patch normalised by its mean and variance
  int64_t decoder_dim = 0, decoder_depth = 2;  // 0: two thirds of the encoder's width

  // distill
  std::string teacher{};  // a model
  int64_t views = 8;      // fixed augmentations of an image, whose teacher features are cached; 0: new ones each epoch

  // dino
  int64_t prototypes = 4096;
  double momentum = 0.996;  // the teacher's at the start; it rises to 1
  double teacher_temperature = 0.04;
};

// The section of a recipe of this objective.
inline const PretrainRecipe& pretrain_of(const Recipe& recipe) {
  return std::any_cast<const PretrainRecipe&>(recipe.section);
}

void describe_pretrain_recipe(Fields& fields, Recipe& recipe);

// Adds a line for each setting that does not go with this objective.
void check_pretrain_recipe(const Recipe& recipe, std::vector<std::string>& problems);

}  // namespace vitrail::train
