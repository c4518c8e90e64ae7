// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

#include "vitrail/nn/module.h"

namespace vitrail::explain {

// The members `tree`, `modules` and `parameters` of the manifest.
void add_model_tree(const nn::Module& model, nlohmann::ordered_json& manifest);

}  // namespace vitrail::explain
