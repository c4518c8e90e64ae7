// SPDX-License-Identifier: Apache-2.0
#pragma once
// The configuration of Hiera (Ryali et al. 2023), also as the image encoder of SAM 2 (Ravi et al. 2024).
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace vitrail::models {

// Pixels between the centres of the patches.  Patches of 7 × 7 pixels overlap.
inline constexpr int64_t kHieraStride = 4;

struct HieraStage {
  int64_t dim = 96, depth = 1, num_heads = 1;
  int64_t window = 0;  // attention in windows of window × window cells of the stage's map; 0: of the whole map
  int64_t mlp_hidden = 384;
  bool pools = false;  // its first block halves the sides of the map
};

struct HieraConfig {
  int64_t in_chans = 3;
  std::vector<HieraStage> stages = {};
  std::vector<int64_t> global_blocks = {};   // blocks that attend to the whole map, whatever their stage does
  std::array<int64_t, 2> positions{56, 56};  // rows and columns of the learned positions, resized to the map
  int64_t window_positions = 0;              // sides of the positions that repeat over the map (SAM 2); 0: none
  double norm_eps = 1e-6;

  // Sides of images are multiples of it, so that pooling leaves no cell out.
  int64_t image_multiple() const;
};

// A block's part of the configuration.
struct HieraBlockConfig {
  int64_t in_dim = 0, dim = 0;  // channels in front of it and behind it
  int64_t num_heads = 1;
  int64_t window = 0;  // as HieraStage::window, of the map in front of the block
  int64_t mlp_hidden = 0;
  bool pools = false;
};

// The first block of a stage has the windows of the stage before it.  Throws Error naming `where` for a configuration
// that no model has: widths that heads do not divide, pooling in windows of an odd side, without a change of width or
// in the first stage, or a global block that does not exist.
std::vector<HieraBlockConfig> hiera_blocks(const HieraConfig& config, const std::string& where);

}  // namespace vitrail::models
