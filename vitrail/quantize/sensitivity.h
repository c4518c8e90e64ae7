// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which layers int8 takes too much from.
#include <map>
#include <string>
#include <vector>

#include "vitrail/models/vision_transformer.h"

namespace vitrail::quantize {

struct Int8Sensitivity {
  std::string layer;  // "blocks.0.attn.qkv"
  double error;       // of the logits (without a head: of the pooled features) when this layer alone is in int8: the
                      // length of the difference by the length of what it differs from
  double cost = 1;    // multiply-adds of an image
};

// Every linear layer of the blocks, the worst first.  before_rounding: the weights of layers that the model has rounded
// already (what gptq_round() gives back), so that what their rounding costs is seen too.
std::vector<Int8Sensitivity> int8_sensitivity(const models::VisionTransformer& model, const std::vector<Tensor>& images,
                                              const std::map<std::string, Tensor>& before_rounding = {});

// Layers to keep out of int8 so that the others' errors together (the root of the sum of their squares, as errors that
// know nothing of each other add up) stay within `tolerance`: whose squared error is largest for what they cost first;
// and those that cost next to nothing.
std::vector<std::string> layers_to_exclude(const std::vector<Int8Sensitivity>& sensitivity, double tolerance);

}  // namespace vitrail::quantize
