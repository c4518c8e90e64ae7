// SPDX-License-Identifier: Apache-2.0
#pragma once
// What models for dense prediction have in common: a Vision Transformer whose feature maps a head reads, and the size
// of their input.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/vision_transformer_config.h"

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
struct DenseResize {
  std::array<int64_t, 2> size{384, 384};  // height, width
  bool keep_aspect_ratio = false;         // both sides have the scale of the one that changes less
  bool covers = false;                    // with keep_aspect_ratio: no side is below `size`
  int64_t multiple = 1;                   // both sides are multiples of it
  bool none = false;                      // the image keeps its size
};

struct DenseConfig {
  std::string architecture = "";  // transformers' model_type
  VisionTransformerConfig backbone{};
  std::string backbone_key_map = "huggingface_dinov2_registers";
  std::string backbone_name = "backbone";  // in front of its tensors' names
  std::vector<int64_t> layers{};           // indices of the blocks whose outputs the head reads
  bool final_norm = true;                  // they are normalised by the backbone's final norm
  DenseResize resize{};
  Preprocessing preprocessing{};
};

// The size {height, width} at the model's input of an image.  Throws Error for an image that is too narrow for a patch
// or whose longer side would be too long.
std::array<int64_t, 2> dense_input_size(const DenseConfig& config, int64_t height, int64_t width);

}  // namespace vitrail::models
