// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::models {

// The convolutions of a model for dense prediction that stay in 16 bits in int8: those of patches and of single cells,
// which take little time and give the values of the result.  3×3 convolutions are in int8.
std::vector<std::string> outer_layers(const nn::Module& model);

}  // namespace vitrail::models
