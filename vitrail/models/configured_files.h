// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>

#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::models {

// The files of a model, read but for the weights.  The texts are config.json and preprocessor_config.json; for weights
// that tell their configuration themselves, such ones are written.
template <class Config>
struct ConfiguredFiles {
  std::shared_ptr<weights::Checkpoint> checkpoint;
  weights::KeyMap key_map;
  Config config = {};
  std::string config_json = {}, preprocessor_json = {};
  weights::Int8Weights int8_weights = weights::Int8Weights::dequantize;
};

}  // namespace vitrail::models
