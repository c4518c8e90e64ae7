// SPDX-License-Identifier: Apache-2.0
#pragma once
// A run with LoRA (Recipe::lora): what it trains and what it saves.
#include <filesystem>
#include <string>
#include <vector>

#include "vitrail/nn/module.h"
#include "vitrail/train/recipe/recipe.h"

namespace vitrail::train {

// The names of the parameters that are neither low-rank parts nor match a pattern of the new layers.
std::vector<std::string> frozen_by_lora(const std::vector<nn::NamedTensor>& parameters,
                                        const std::vector<std::string>& new_layers);

// The saved parameters with the low-rank parts added to the weights; themselves without any.
std::vector<nn::NamedTensor> merged(const Recipe& recipe, const std::vector<nn::NamedTensor>& saved);

// Writes the low-rank parts and the new layers among the saved parameters as the folder "adapter" of a model's folder,
// if there are low-rank parts.
void write_adapter(const std::filesystem::path& model, const Recipe& recipe, const std::string& config_json,
                   const std::vector<nn::NamedTensor>& saved, const std::vector<std::string>& new_layers);

}  // namespace vitrail::train
