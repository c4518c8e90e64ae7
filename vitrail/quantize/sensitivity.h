// SPDX-License-Identifier: Apache-2.0
#pragma once
// Mixed precision: which linear layers lose too much in int8.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

struct Int8Sensitivity {
  std::string layer;  // "blocks.0.attn.qkv"
  // Relative L2 error of the logits, ‖ŷ − y‖ / ‖y‖, when only this layer is int8.  Without a head: of pooled features.
  double error;
  double cost = 1;  // multiply-adds per image
};

// The sensitivity of every linear layer of the blocks, the largest error first.
// images: batches [B, C, H, W].  originals: the weights that gptq_round() returned, so that the error of rounding
// counts; empty if the model has not been rounded.
std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::map<std::string, Tensor>& originals = {});

// Chooses layers to exclude from int8.  Errors of different layers are taken as independent: layers with the largest
// squared error per cost are excluded until the root sum of squares of the others is within `tolerance`.  Layers of
// negligible cost are always excluded.
std::vector<std::string> layers_to_exclude(const std::vector<Int8Sensitivity>& sensitivity, double tolerance);

}  // namespace vitrail::quantize
