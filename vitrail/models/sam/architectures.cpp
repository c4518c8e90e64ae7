// SPDX-License-Identifier: Apache-2.0
#include "vitrail/models/sam/architectures.h"

#include <algorithm>

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

}  // namespace

const std::vector<SamArchitecture>& sam_architectures() {
  static const std::vector<SamArchitecture> table{architecture("sam_vit_b", 768, 12, 12),
                                                  architecture("sam_vit_l", 1024, 24, 16),
                                                  architecture("sam_vit_h", 1280, 32, 16)};
  return table;
}

const SamArchitecture* find_sam_architecture(const std::string& name) {
  const auto& table = sam_architectures();
  const auto found = std::ranges::find(table, name, &SamArchitecture::name);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace vitrail::models
