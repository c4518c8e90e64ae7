// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/dense/outer_layers.h"

namespace vitrail::models {

std::vector<std::string> outer_layers(const nn::Module& model) {
  constexpr std::string_view suffix = ".weight";
  std::vector<std::string> layers;
  for (const nn::NamedTensor& parameter : model.named_parameters()) {
    const std::string& name = parameter.name;
    const Tensor& weight = parameter.tensor;
    if (name.ends_with(suffix) && weight.rank() == 4 && weight.size(2) != 3)
      layers.push_back(name.substr(0, name.size() - suffix.size()));
  }
  return layers;
}

}  // namespace vitrail::models
