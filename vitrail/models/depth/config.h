// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a depth estimator: a Vision Transformer with the head of DPT or of Depth Anything.
#include <string>

#include "vitrail/models/dense/config.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

struct DepthConfig : DenseConfig {
  DptNeckConfig neck{};
  int64_t head_dim = 32;
  bool head_projection = false;  // a convolution in front of the head
  bool head_doubles = false;     // the output has twice the size of the fused map, else that of the input
  bool metric = false;           // depth in metres, up to max_depth; else inverse depth without a unit
  double max_depth = 1;          // the factor of the result, also of relative depth
};

// Reads transformers' config.json of a depth_anything or a dpt, and its preprocessor_config.json (empty: its defaults).
// The paths name them in errors.
DepthConfig read_depth_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path);

// The configuration of the authors' file, which has none: from the shapes of its tensors, and from its name, which
// tells the version and the unit: "depth_anything_vits14.pth", "depth_anything_v2_vits.pth",
// "depth_anything_v2_metric_hypersim_vits.pth" (20 m) or "…_vkitti_…" (80 m).  Throws Error for another name, because
// these files differ in nothing else.
DepthConfig depth_config_of_file(const weights::Checkpoint& checkpoint, const std::string& path);

// transformers' config.json and preprocessor_config.json of such a model.
std::string write_depth_anything_config(const DepthConfig& config);
std::string write_depth_processor(const DepthConfig& config);

}  // namespace vitrail::models
