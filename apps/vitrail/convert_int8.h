// SPDX-License-Identifier: Apache-2.0
#pragma once
// What `convert --dtype int8` does to a model.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/tensor/quantized_tensor.h"

namespace vitrail::app {

struct Int8Options {
  std::vector<std::string> calibrate;  // images and folders; empty: the weights as they are
  double tolerance = 0.0165;           // see quantize::layers_to_exclude
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

struct Int8Conversion {
  models::Int8Config choice;
  std::map<std::string, QuantizedTensor> weights;  // of the other layers, with their corrections, by layer
};

// Smooths and rounds the model and chooses the layers that stay in 16 bits, where there are pictures to do it with.
Int8Conversion int8_conversion(models::VisionTransformer& model, const Int8Options& options,
                               const models::ModelConfig& config, const std::string& where);

// The blocks' linear layers in 8 bits but for those that stay, all else as it is.
NamedTensors int8_tensors(const models::VisionTransformer& model, const Int8Conversion& conversion);

void print_kept(const models::Int8Config& choice, int64_t layers);

}  // namespace vitrail::app
