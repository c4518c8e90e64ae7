// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::nn {

// What token merging (Bolya et al. 2023) carries from block to block: every block turns `per_block` tokens into parts
// of others between its attention and its MLP, fewer when fewer are left.
class TokenMerging {
 public:
  TokenMerging(int64_t per_block, int64_t prefix) : per_block_(per_block), prefix_(prefix) {}

  // x [B, N, C] after the attention, its keys [B, H, N, d] → [B, N − merged, C].
  Tensor merge(const Tensor& x, const Tensor& keys);
  // Proportional attention: log size of each key [B, 1, 1, N]; undefined while every token is one patch.
  Tensor key_bias() const;
  // [B, N]: the share of the image's patches that each token stands for; undefined while all are alike.
  Tensor shares() const;

 private:
  int64_t per_block_, prefix_;
  int64_t patches_ = 0;  // before anything was merged
  Tensor sizes_, log_sizes_;
};

}  // namespace vitrail::nn
