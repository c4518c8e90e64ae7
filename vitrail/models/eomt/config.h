// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of EoMT: a Vision Transformer whose last blocks see queries beside the patches.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"

namespace vitrail::models {

struct EomtConfig {
  std::string architecture = "eomt";  // transformers' model_type: eomt (DINOv2) or eomt_dinov3
  VisionTransformerConfig backbone{};
  int64_t num_blocks = 4;  // the last blocks, which see the queries
  int64_t num_queries = 200;
  int64_t num_upscale_blocks = 2;  // each doubles the sides of the masks
  int64_t num_classes = 2;         // without "no object"
  std::vector<std::string> labels{};
  // Whether queries attend only to the patches of their masks, for each of the num_blocks.
  std::vector<bool> masked{};
  bool split = false;  // images are cut into crops along their longer side (for semantic maps), else padded
  Preprocessing preprocessing{};

  int64_t side() const { return backbone.img_size[0]; }  // the side of the input, a square
};

// How an image becomes inputs, as transformers' EomtImageProcessor chooses it: resized, then with `split` cut into
// crops that begin at `starts` along the longer side, else padded with 0 at the right and below.
struct EomtPlacement {
  std::array<int64_t, 2> resized{};  // height, width
  std::vector<int64_t> starts{0};
  bool vertical = false;  // the longer side is the height
};

// Throws Error for an image that would have no pixel at the input, or too many crops.
EomtPlacement place_for_eomt(const EomtConfig& config, int64_t height, int64_t width);

// Reads transformers' config.json of an eomt or eomt_dinov3, and its preprocessor_config.json (empty: its defaults).
// The paths name them in errors.
EomtConfig read_eomt_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                            const std::string& preprocessor_path);

}  // namespace vitrail::models
