// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of a depth estimator: a Vision Transformer with the head of DPT or of Depth Anything.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"
#include "vitrail/weights/checkpoint.h"

namespace vitrail::models {

// What a patch receives of the class token: nothing, the sum with it, or a linear layer and an activation of both.
enum class DptReadout : uint8_t { ignore, add, project };

// Maps of the backbone are resampled by `factors`: above 1 by a transposed convolution, below 1 by a strided one.
struct DptNeckConfig {
  DptReadout readout = DptReadout::ignore;
  kernels::Activation readout_act = kernels::Activation::gelu;
  int64_t dim = 384;                                   // channels of the backbone's maps
  std::vector<int64_t> hidden_dims{48, 96, 192, 384};  // one per map, the finest one first
  std::vector<double> factors{4, 2, 1, 0.5};
  int64_t fusion_dim = 64;
  // The fused map is enlarged to twice its size each time, or to that of the next map and twice its size at the end.
  bool doubles = false;
  bool batch_norm = false;    // behind each convolution of the fusion's residual layers
  bool residual_bias = true;  // these convolutions have biases
};

// The image's size at the model's input, as transformers' DPTImageProcessor chooses it.
struct DepthResize {
  std::array<int64_t, 2> size{384, 384};  // height, width
  bool keep_aspect_ratio = false;         // both sides have the scale of the one that changes less
  int64_t multiple = 1;                   // both sides are multiples of it
  bool none = false;                      // the image keeps its size
};

struct DepthConfig {
  std::string architecture = "depth_anything";  // transformers' model_type
  VisionTransformerConfig backbone{};
  std::string backbone_key_map = "huggingface_dinov2_registers";
  std::string backbone_name = "backbone";  // in front of its tensors' names
  std::vector<int64_t> layers{};           // indices of the blocks whose outputs the neck reads
  bool final_norm = true;                  // they are normalised by the backbone's final norm
  DptNeckConfig neck{};
  int64_t head_dim = 32;
  bool head_projection = false;  // a convolution in front of the head
  bool head_doubles = false;     // the output has twice the size of the fused map, else that of the input
  bool metric = false;           // depth in metres, up to max_depth; else inverse depth without a unit
  double max_depth = 1;          // the factor of the result, also of relative depth
  DepthResize resize{};
  Preprocessing preprocessing{};
};

// The size {height, width} at the model's input of an image.  Throws Error for an image that is too narrow for a patch
// or whose longer side would be too long.
std::array<int64_t, 2> resized_for_depth(const DepthConfig& config, int64_t height, int64_t width);

// Reads transformers' config.json of a depth_anything or a dpt, and its preprocessor_config.json (empty: its defaults).
// The paths name them in errors.
DepthConfig read_depth_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                              const std::string& preprocessor_path);

// The configuration of the authors' file, which has none: from the shapes of its tensors, and from its name, which
// tells the version and the unit: "depth_anything_vits14.pth", "depth_anything_v2_vits.pth",
// "depth_anything_v2_metric_hypersim_vits.pth" (20 m) or "…_vkitti_…" (80 m).  Throws Error for another name, because
// these files differ in nothing else.
DepthConfig depth_config_of_file(const weights::Checkpoint& checkpoint, const std::string& path);

}  // namespace vitrail::models
