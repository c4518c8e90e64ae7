// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/block.h"

namespace vitrail::nn {

// Token merging (Bolya et al. 2023, "Token Merging: Your ViT But Faster", section 3): every block merges `per_block`
// tokens (r in the paper) into others between its attention and its MLP, or as many as it can.  An object is for one
// forward pass, because it keeps the sizes of tokens from block to block.
class TokenMerging {
 public:
  TokenMerging(int64_t per_block, int64_t prefix) : per_block_(per_block), prefix_(prefix) {}

  // block.forward(x) with merging: x [B, N, C] → [B, N − merged, C].  With num_queries > 0 it computes only the first
  // tokens [B, num_queries, C], which must be prefix tokens, and merges nothing.
  Tensor forward(const Block& block, const Tensor& x, int64_t num_queries = 0);
  // The fraction of the image's patches that each token represents [B, N]; undefined if no tokens were merged.
  Tensor shares() const;

 private:
  Tensor merge(const Tensor& x, const Tensor& keys);
  Tensor key_bias() const;

  int64_t per_block_, prefix_;
  int64_t patches_ = 0;  // number of patch tokens before the first merge
  Tensor sizes_, log_sizes_;
};

}  // namespace vitrail::nn
