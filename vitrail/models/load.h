// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loads models from files: configuration, key map and weights.
#include <filesystem>
#include <memory>
#include <optional>

#include "vitrail/models/model_config.h"
#include "vitrail/models/model_files.h"
#include "vitrail/models/text_transformer.h"
#include "vitrail/models/vision_transformer.h"
#include "vitrail/weights/checkpoint.h"
#include "vitrail/weights/int8_tensors.h"
#include "vitrail/weights/key_map.h"
#include "vitrail/weights/lora_adapter.h"

namespace vitrail::models {

struct LoadOptions {
  std::optional<std::string> config = {};   // a config.json for weights without one, or the name of an architecture
  std::optional<std::string> key_map = {};  // a key map's file, or the name of a built-in key map
  // Another image size {height, width}; positions are interpolated.
  std::optional<std::array<int64_t, 2>> image_size = {};
  PreprocessingOverrides preprocessing = {};
  // A LoRA adapter (weights/lora_adapter.h), a folder or file.  The classes, the image size and the preprocessing are
  // those of a config.json beside it; without one, a new head has as many classes as rows.
  std::optional<std::string> adapter = {};
  bool operator==(const LoadOptions&) const = default;
};

// A model's files, opened: the configuration, the weights (not read yet) and the map of their keys.
struct OpenedModel {
  ModelConfig config;
  std::shared_ptr<const weights::Checkpoint> checkpoint;
  weights::KeyMap key_map;
  std::filesystem::path folder = {};                         // has the weights, and a dual model's tokenizer
  std::shared_ptr<const weights::LoraAdapter> adapter = {};  // null: none
};

// A configuration without weights: that of a config.json (and the preprocessor_config.json beside it), or of a
// registered architecture, at another image size if one is given.
ModelConfig read_config(const std::string& file_or_name,
                        const std::optional<std::array<int64_t, 2>>& image_size = std::nullopt);

// The configuration is options.config or a config.json beside the weights.  Throws Error for a malformed file, and for
// a config.json in a folder that is no regular file or a link to one; options.config may be a pipe.
OpenedModel open_model(const ModelFiles& files, const LoadOptions& options = {});

// Builds the model in eval mode, with f32 weights.  A model for a Session may keep int8 weights
// (weights::Int8Weights::keep); vitrail::Model does, and runs an int8 model in int8.  Throws one Error that lists all
// missing, extra and misshapen keys.
VisionTransformer build_model(const OpenedModel& opened, weights::Int8Weights int8 = weights::Int8Weights::dequantize);

// The text tower of a dual model and what turns similarities into logits:
//   logits = exp(logit_scale) · cos(image, text) + logit_bias
struct TextTower {
  TextTransformer model;
  double logit_scale = 0, logit_bias = 0;
};

// Builds the text tower of an opened dual model, as build_model() does the image tower.  Throws Error for an image
// model alone, and for a checkpoint without a text tower.
TextTower build_text_tower(const OpenedModel& opened);

// The fields that key maps may use in their "sizes".
std::map<std::string, int64_t> field_sizes(const VisionTransformerConfig& config);

}  // namespace vitrail::models
