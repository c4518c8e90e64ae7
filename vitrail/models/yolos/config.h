// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of YOLOS: a Vision Transformer with detection tokens.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

struct YolosConfig {
  std::string architecture = "yolos";  // transformers' model_type
  VisionTransformerConfig backbone{};
  int64_t num_detection_tokens = 100;
  bool mid_positions = true;          // positions are added behind each block but the last
  std::vector<std::string> labels{};  // the names of the classes, in index order, without "no object"
  Preprocessing preprocessing{};

  int64_t num_classes() const { return static_cast<int64_t>(labels.size()); }
  // The size {height, width} of an image whose patches have the model's own positions.
  std::array<int64_t, 2> nominal_size() const;
};

// The size {height, width} at the model's input of an image, as transformers' YolosImageProcessor chooses it.  Throws
// Error for an image that is too narrow for a patch or has too many patches.
std::array<int64_t, 2> yolos_input_size(const YolosConfig& config, int64_t height, int64_t width);

// Reads transformers' config.json of a yolos, and its preprocessor_config.json (empty: its defaults).  The paths name
// them in errors.
YolosConfig read_yolos_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path);

}  // namespace vitrail::models
