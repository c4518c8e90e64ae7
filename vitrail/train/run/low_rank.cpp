// SPDX-License-Identifier: Apache-2.0
#include "vitrail/train/run/low_rank_internal.h"

#include <algorithm>
#include <map>

#include "vitrail/optim/parameter_groups.h"
#include "vitrail/weights/lora_adapter.h"

namespace vitrail::train {
namespace {

bool matches_any(const std::vector<std::string>& patterns, const std::string& name) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return optim::matches(pattern, name); });
}

// The name of the weight that a low-rank part is added to: "X.lora_A.weight" → "X.weight".
std::string adapted_weight(const std::string& part) { return part.substr(0, part.rfind(".lora_")) + ".weight"; }

}  // namespace

std::vector<std::string> frozen_by_lora(const std::vector<nn::NamedTensor>& parameters,
                                        const std::vector<std::string>& new_layers) {
  std::vector<std::string> frozen;
  for (const nn::NamedTensor& parameter : parameters) {
    if (!nn::is_lora(parameter.name) && !matches_any(new_layers, parameter.name)) frozen.push_back(parameter.name);
  }
  return frozen;
}

std::vector<nn::NamedTensor> merged(const Recipe& recipe, const std::vector<nn::NamedTensor>& saved) {
  return recipe.lora ? nn::merge_lora(saved, recipe.lora->scale()) : saved;
}

void write_adapter(const std::filesystem::path& model, const Recipe& recipe, const std::string& config_json,
                   const std::vector<nn::NamedTensor>& saved, const std::vector<std::string>& new_layers) {
  if (!recipe.lora) return;
  weights::LoraAdapter adapter;
  for (const nn::NamedTensor& parameter : saved) {
    if (!nn::is_lora(parameter.name)) {
      if (matches_any(new_layers, parameter.name)) adapter.tensors[parameter.name] = parameter.tensor;
      continue;
    }
    weights::LoraAdapter::Part& part = adapter.parts[adapted_weight(parameter.name)];
    part.scale = recipe.lora->scale();
    (parameter.name.ends_with("lora_A.weight") ? part.a : part.b) = parameter.tensor;
  }
  if (!adapter.parts.empty()) weights::write_lora_adapter(model / "adapter", adapter, recipe.model.init, config_json);
}

}  // namespace vitrail::train
