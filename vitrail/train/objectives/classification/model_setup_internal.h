// SPDX-License-Identifier: Apache-2.0
#pragma once
// Construction of the model that a recipe describes: from scratch, or from a checkpoint adapted to other classes,
// another image size, patch size or depth.
#include <string>
#include <vector>

#include "vitrail/models/load.h"
#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

struct PreparedModel {
  models::ModelConfig config;  // with the class names of the data as labels
  models::VisionTransformer model;
  std::vector<std::string> notes;  // how a checkpoint was adapted, for the user: "head: new, 10 classes"
  bool new_classes = true;         // whether a row of the head is not the checkpoint's
};

// Replaces the head by a classifier: also that of a model without one, and the projection of a dual model's image
// tower.
void set_classifier(models::VisionTransformerConfig& config, int64_t classes);

// Returns the configuration of the recipe's model for these class names.  `source`: the configuration of the checkpoint
// to start from, or null.  Throws Error for an unknown architecture, and if model_args sets another num_classes.
models::ModelConfig model_config(const ModelRecipe& recipe, const std::vector<std::string>& classes,
                                 const models::ModelConfig* source);

// Throws Error for an adapter, which is for Vision Transformers, of a start of another kind: "an RF-DETR".
void refuse_adapter(const ModelRecipe& recipe, const std::string& kind);

// Opens the checkpoint of `files`, those of `recipe.init`.
models::OpenedModel open_source(const ModelRecipe& recipe, const models::ModelFiles& files);

// Returns the configuration of the recipe's model but for its classes.
models::VisionTransformerConfig architecture_of(const ModelRecipe& recipe);

// Returns the preprocessing of images.  The recipe's settings override the checkpoint's; the defaults suit small
// images: bicubic, no crop, mean and standard deviation 0.5.
models::Preprocessing preprocessing_of(const DataRecipe& recipe, const models::ModelConfig& config);

// Builds the model with f32 weights.  Without `recipe.init` they are drawn from `seed`, and recipe.positions and
// recipe.mimetic replace a part of them.  From the checkpoint `recipe.init`,
// - rows of the head are copied for classes of the same name, other rows are new;
//   without names the head is copied if the number of classes is the same;
// - position embeddings are interpolated to another grid (timm's resample_abs_pos_embed, with the model's pos_interp);
// - the patch embedding is resampled to another patch size (nn::resample_patch_weight),
//   and RGB weights are summed for a model of one channel;
// - a shallower model takes the first, the last and evenly spaced blocks between them
//   (as DistilBERT, Sanh et al. 2019, arXiv 1910.01108); one block: the first;
// - the final norm moves between norm and fc_norm if the pooling changes.
// Throws one Error that lists all other differences.
PreparedModel prepare_model(const ModelRecipe& recipe, const std::vector<std::string>& classes, uint64_t seed,
                            bool multi_label = false);

// The rate of patch dropout after so many epochs: that of recipe.token_drop, or the model's own.
double patch_drop_rate(const Recipe& recipe, const models::VisionTransformerConfig& config, double epochs);

}  // namespace vitrail::train
