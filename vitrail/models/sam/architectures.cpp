// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/architectures.h"

#include <algorithm>
#include <array>

#include "vitrail/models/sam/sam2_config_internal.h"

namespace vitrail::models {
namespace {

constexpr int64_t kWindow = 14;

// The last block of each quarter attends to the whole grid.
SamArchitecture architecture(const char* name, int64_t dim, int64_t depth, int64_t num_heads) {
  SamArchitecture result{name, {}};
  SamEncoderConfig& encoder = result.config.encoder;
  encoder.dim = dim;
  encoder.num_heads = num_heads;
  encoder.head_dim = dim / num_heads;
  encoder.mlp_hidden = 4 * dim;
  for (int64_t i = 1; i <= depth; ++i) {
    const bool global = i % (depth / 4) == 0;
    encoder.blocks.push_back({global ? 0 : kWindow, 2 * (global ? encoder.grid : kWindow) - 1});
  }
  return result;
}

// The stages of Hiera (sam2/configs/sam2.1/*.yaml).
struct HieraSizes {
  int64_t dim, num_heads;  // In the first stage; both double from stage to stage.
  std::array<int64_t, 4> depths, windows;
  std::vector<int64_t> global_blocks;
  int64_t positions;  // rows and columns
};

SamArchitecture sam2(const char* name, const HieraSizes& sizes) {
  SamArchitecture result{name, {}};
  SamEncoderConfig& encoder = result.config.encoder;
  HieraConfig& hiera = encoder.hiera.emplace();
  for (size_t i = 0; i < sizes.depths.size(); ++i) {
    const int64_t dim = sizes.dim << i;
    hiera.stages.push_back({.dim = dim,
                            .depth = sizes.depths[i],
                            .num_heads = sizes.num_heads << i,
                            .window = sizes.windows[i],
                            .mlp_hidden = 4 * dim,
                            .pools = i > 0});
  }
  hiera.global_blocks = sizes.global_blocks;
  hiera.positions = {sizes.positions, sizes.positions};
  hiera.window_positions = sizes.windows[0];
  encoder.dim = hiera.stages.back().dim;
  set_sam2_decoder(result.config.decoder, {});
  result.config.preprocessing = SamPreprocessing::segment_anything_2;
  return result;
}

}  // namespace

const std::vector<SamArchitecture>& sam_architectures() {
  static const std::vector<SamArchitecture> table{
      architecture("sam_vit_b", 768, 12, 12),
      architecture("sam_vit_l", 1024, 24, 16),
      architecture("sam_vit_h", 1280, 32, 16),
      sam2("sam2_hiera_tiny", {96, 1, {1, 2, 7, 2}, {8, 4, 14, 7}, {5, 7, 9}, 7}),
      sam2("sam2_hiera_small", {96, 1, {1, 2, 11, 2}, {8, 4, 14, 7}, {7, 10, 13}, 7}),
      sam2("sam2_hiera_base_plus", {112, 2, {2, 3, 16, 3}, {8, 4, 14, 7}, {12, 16, 20}, 14}),
      sam2("sam2_hiera_large", {144, 2, {2, 6, 36, 4}, {8, 4, 16, 8}, {23, 33, 43}, 7})};
  return table;
}

const SamArchitecture* find_sam_architecture(const std::string& name) {
  const auto& table = sam_architectures();
  const auto found = std::ranges::find(table, name, &SamArchitecture::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace vitrail::models
