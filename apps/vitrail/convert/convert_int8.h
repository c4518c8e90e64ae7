// SPDX-License-Identifier: Apache-2.0
#pragma once
// int8 quantisation for `convert --dtype int8`.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/tasks/loaded_model.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::app {

struct Int8Options {
  std::vector<std::string> calibration_inputs;  // images and folders; empty: round to nearest, without calibration
  double tolerance = 0.0165;                    // relative L2 error of the output, see quantize::layers_to_exclude
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct Int8Conversion {
  models::Int8Config config;
  std::map<std::string, QuantizedTensor> weights;  // calibrated int8 weights with their corrections, by layer
};

// With calibration images: smooths the activations, rounds the weights with GPTQ, and chooses the layers that int8
// excludes.  Without: does nothing.  `where` names the model in errors.
Int8Conversion int8_conversion(models::VisionTransformer& model, const Int8Options& options,
                               const models::ModelConfig& config, const std::string& where);

// The same for a network that its task runs.
Int8Conversion int8_conversion(const tasks::LoadedModel& model, const tasks::Network& network,
                               const Int8Options& options);

// The parameters of a model in an int8 file: the linear layers of the blocks in int8, excluded layers in 16 bits, all
// others unchanged.
NamedTensors int8_tensors(const nn::Module& model, const Int8Conversion& conversion);

// Reports on standard error which of the `layers` linear layers int8 excludes.
void print_excluded_layers(const models::Int8Config& config, int64_t layers);

}  // namespace vitrail::app
