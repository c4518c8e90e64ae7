// SPDX-License-Identifier: Apache-2.0
#pragma once
// Construction of the model of a recipe with the objective "segment".
#include <string>
#include <vector>

#include "vitrail/models/sam/sam.h"
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/train/objectives/segmentation/segment_recipe_internal.h"

namespace vitrail::train {

struct PreparedSam {
  models::Sam model;
  std::vector<std::string> notes;   // how a checkpoint was adapted, for the user
  std::vector<std::string> frozen;  // name patterns of the parameters that are not trained
};

// The configuration of Segment Anything with the encoder of a Vision Transformer.  Throws one Error that lists the
// parts of the Vision Transformer that the encoder does not have, and an Error for an image size that the patch size
// does not divide.
models::SamConfig segment_config(const models::VisionTransformerConfig& vit, const SegmentRecipe& recipe);

// Builds the model: `model.init` may be a checkpoint of Segment Anything, which is fine-tuned, or of a Vision
// Transformer, from which the image encoder starts.  Then
// - position embeddings are interpolated to the grid, those of the CLS and other tokens are dropped;
// - LayerScale is multiplied into the layers before it, and the normalisation of images into the patch embedding;
// - relative positions begin with zeros, and what a Vision Transformer does not have is drawn from the seed.
PreparedSam prepare_sam(const Recipe& recipe);

}  // namespace vitrail::train
