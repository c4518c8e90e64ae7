// SPDX-License-Identifier: Apache-2.0
#pragma once
// The model that a recipe asks for: from scratch, or a checkpoint brought to another head, size or patch.
#include <string>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/recipe.h"

namespace vitrail::train {

struct PreparedModel {
  models::ModelConfig config;  // with the labels of the data
  models::VisionTransformer model;
  std::vector<std::string> notes;  // what was done to a checkpoint, for people: "head: new, 10 classes instead of 1000"
};

// The configuration that the recipe names, for `classes` (their names).  A num_classes in model_args that is not theirs
// is an Error.  `source`: that of the checkpoint to start from, or null.
models::ModelConfig model_config(const ModelRecipe& recipe, const std::vector<std::string>& classes,
                                 const models::ModelConfig* source);

// How many colour channels that model reads, before the classes are known.
int64_t input_channels(const ModelRecipe& recipe);

// How pictures are prepared for it: the checkpoint's settings, the recipe's over them, and what neither says as for
// small pictures (bicubic, the whole picture, values around 0.5 ± 0.5).
models::Preprocessing preprocessing_of(const DataRecipe& recipe, const models::ModelConfig& config);

// f32 weights of its own memory, from `seed` or from the checkpoint `recipe.init`.  From scratch, what recipe.positions
// and recipe.mimetic name replaces what weight_init drew.  Of a checkpoint
//   the head is kept for the classes that both name alike, row by row; other classes get new rows; where either names
//     none, the head is kept if it has as many classes and is new otherwise;
//   positions are interpolated to another grid (timm's resample_abs_pos_embed, by the model's pos_interp);
//   the patch embedding is resampled to another patch size (nn::resample_patch_weight);
//   of more blocks than wanted the first and the last are kept, and others evenly between them (as DistilBERT begins,
//     arXiv 1910.01108); of one block, the first;
//   a final norm moves between norm and fc_norm with the pooling; RGB patch weights are summed for one channel.
// Whatever else does not fit is one Error that lists it.
PreparedModel prepare_model(const ModelRecipe& recipe, const std::vector<std::string>& classes, uint64_t seed);

}  // namespace vitrail::train
