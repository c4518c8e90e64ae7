// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::models {

// Whether a parameter is of a Vision Transformer's blocks: "backbone.blocks.0.norm1.weight".
bool is_of_block(const std::string& name);

// The layers of a model for dense prediction that stay in 16 bits in int8: all but those of the Vision Transformer's
// blocks and 3×3 convolutions.  They take little time and give the values of the result.
std::vector<std::string> outer_layers(const nn::Module& model);

}  // namespace vitrail::models
