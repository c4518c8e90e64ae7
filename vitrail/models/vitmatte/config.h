// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of ViTMatte: a ViTDet backbone and a decoder of convolutions.
#include <array>
#include <string>
#include <vector>

#include "vitrail/models/preprocessing.h"
#include "vitrail/models/sam/config.h"

namespace vitrail::models {

struct VitMatteConfig {
  // ViTDet, whose blocks are those of Segment Anything.  The grid is that of its positions.
  SamEncoderConfig backbone{.in_chans = 4};
  std::vector<int64_t> residual_blocks{};              // indices of the blocks with convolutions behind them, ascending
  std::vector<int64_t> stream_dims{48, 96, 192};       // channels at strides 2, 4, 8
  std::vector<int64_t> fusion_dims{256, 128, 64, 32};  // channels of the fused maps, the coarsest one first
  double batch_norm_eps = 1e-5;
  int64_t size_divisor = 32;  // the input is padded to a multiple of it
  Preprocessing preprocessing{};
};

// The size {height, width} of the padded input of an image.  Throws Error for an image that has too many pixels.
std::array<int64_t, 2> padded_for_matting(const VitMatteConfig& config, int64_t height, int64_t width);

// Reads transformers' config.json of a vitmatte, and its preprocessor_config.json (empty: its defaults).  The paths
// name them in errors.
VitMatteConfig read_vitmatte_config(const std::string& config, const std::string& path, const std::string& preprocessor,
                                    const std::string& preprocessor_path);

}  // namespace vitrail::models
