// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace vitrail::train {

// The methods of learning without labels, the values of "pretrain.method" in a recipe.
std::vector<std::string> pretrain_method_names();

}  // namespace vitrail::train
