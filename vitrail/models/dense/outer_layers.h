// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "vitrail/nn/module.h"

namespace vitrail::models {

// The convolutions of a model for dense prediction, which stay in 16 bits in int8: they are few outside the backbone's
// blocks, and see the values of the result.
std::vector<std::string> outer_layers(const nn::Module& model);

}  // namespace vitrail::models
