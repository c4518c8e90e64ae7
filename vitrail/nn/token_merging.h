// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/nn/block.h"

namespace vitrail::nn {

// Token merging (Bolya et al. 2023, "Token Merging: Your ViT But Faster", section 3): between its attention and its MLP
// every block merges `per_block` tokens into others, or fewer when fewer are left.  One object serves one forward pass:
// it carries the tokens' sizes from block to block.
class TokenMerging {
 public:
  TokenMerging(int64_t per_block, int64_t prefix) : per_block_(per_block), prefix_(prefix) {}

  // block.forward(x) with merging: x [B, N, C] → [B, N − merged, C].  With num_queries > 0 only the first tokens are
  // computed, [B, num_queries, C]; they are prefix tokens, which are never merged.
  Tensor forward(const Block& block, const Tensor& x, int64_t num_queries = 0);
  // The share of the image's patches that each token represents [B, N]; undefined until tokens have been merged.
  Tensor shares() const;

 private:
  Tensor merge(const Tensor& x, const Tensor& keys);
  Tensor key_bias() const;

  int64_t per_block_, prefix_;
  int64_t patches_ = 0;  // before the first merge
  Tensor sizes_, log_sizes_;
};

}  // namespace vitrail::nn
