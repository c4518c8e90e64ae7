// SPDX-License-Identifier: Apache-2.0
#pragma once
// config.json, read: the model, its preprocessing, its labels.
#include <optional>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

// What `convert --dtype int8` found out: with it, int8 is what the model runs in unless told otherwise.
struct Int8Config {
  std::vector<std::string> kept;  // linear layers that lose too much and stay in 16 bits: "blocks.0.mlp.fc2"
};

struct ModelConfig {
  std::string architecture;  // the registered name, "vit", or Hugging Face's model_type
  VisionTransformerConfig vit;
  Preprocessing preprocessing;
  std::vector<std::string> labels;        // in index order; empty when the file names none
  std::vector<std::string> descriptions;  // longer names, in index order; may be empty
  std::optional<Int8Config> int8;
  std::string key_map;  // "key_map": a path or a built-in family's name, or its JSON; empty: detect
};

// Reads timm's config.json, the "vit" form, or Hugging Face transformers' config.json with its
// preprocessor_config.json (empty text when there is none).  `where` names the file in errors.  An unknown key inside
// model_args, a wrong type or a value that makes no model is an Error that names its path in the file.
ModelConfig parse_model_config(const std::string& json, const std::string& preprocessor_json, const std::string& where);

// config.json for hub layout; parse_model_config reads it back to the same configuration.  "architecture" is a name
// that timm registers where the model is that architecture but for arguments that timm takes (in model_args; what timm
// has no argument for stands in vitrail_args); otherwise "vit".
std::string write_model_config(const ModelConfig& config);

// preprocessor_config.json, for preprocessing by Hugging Face's rules; empty for timm's, which config.json holds.
std::string write_preprocessor_config(const Preprocessing& preprocessing);

}  // namespace vitrail::models
