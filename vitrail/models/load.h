// SPDX-License-Identifier: Apache-2.0
#pragma once
// From a path that a user gives to a model that runs.
#include <filesystem>
#include <memory>
#include <optional>

#include "vitrail/models/model_config.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/key_map.h"

namespace vitrail::models {

struct LoadOptions {
  std::optional<std::string> config;   // a config.json for weights that lie alone, or a registered architecture's name
  std::optional<std::string> key_map;  // a key map's file, or a built-in family's name
  // Runs the model at another image size: positions are interpolated.  {height, width}.
  std::optional<std::array<int64_t, 2>> image_size;
};

// What lies at a path, opened but not read: the configuration, the weights file and how its keys are understood.
struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<const weights::Checkpoint> checkpoint;
  weights::KeyMap key_map;
};

// `path`: a folder in hub layout (config.json beside model.safetensors or pytorch_model.bin), or a weights file with
// options.config or a config.json beside it, or a bundled model's name (bundled.h).  Throws Error that says what was
// looked for.
OpenedModel open_model(const std::filesystem::path& path, const LoadOptions& options = {});

// Builds the model with the file's weights as f32, in eval mode.  Missing, extra and misshapen keys are one Error that
// lists all of them.  A model for a Session keeps weights in int8 (weights::Int8Weights::keep).
VisionTransformer build_model(const OpenedModel& opened, weights::Int8Weights int8 = weights::Int8Weights::dequantize);

// The fields that key maps may name in their "sizes".
std::map<std::string, int64_t> field_sizes(const VisionTransformerConfig& config);

}  // namespace vitrail::models
