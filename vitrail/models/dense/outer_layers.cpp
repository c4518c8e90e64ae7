// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dense/outer_layers.h"

namespace vitrail::models {
namespace {

bool is_3x3(const Tensor& weight) { return weight.rank() == 4 && weight.size(2) == 3 && weight.size(3) == 3; }

}  // namespace

bool is_of_block(const std::string& name) { return ("." + name).find(".blocks.") != std::string::npos; }

std::vector<std::string> outer_layers(const nn::Module& model) {
  constexpr std::string_view suffix = ".weight";
  std::vector<std::string> layers;
  for (const auto& [name, weight] : model.named_parameters()) {
    if (name.ends_with(suffix) && weight.rank() > 1 && !is_of_block(name) && !is_3x3(weight))
      layers.push_back(name.substr(0, name.size() - suffix.size()));
  }
  return layers;
}

}  // namespace vitrail::models
