// SPDX-License-Identifier: Apache-2.0
#pragma once
// A model as `convert` writes it.
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/tensor/tensor.h"

namespace vitrail::models {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct WrittenModel {
  std::string config_json{};
  NamedTensors tensors{};
  std::string timm_name{};  // the architecture that timm registers; empty for vitrail's own form
};

// config.json and the tensors, given under their native names, in the form that timm opens, if timm's arguments can
// express the model; else those of write_model_config() and the tensors as they are.
WrittenModel written_model(const ModelConfig& config, const NamedTensors& tensors);

}  // namespace vitrail::models
