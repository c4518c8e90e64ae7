// SPDX-License-Identifier: Apache-2.0
#include "vitrail/nn/token_merging.h"

#include <algorithm>

#include "vitrail/ops/elementwise.h"
#include "vitrail/ops/token_merging.h"

namespace vitrail::nn {

Tensor TokenMerging::forward(const Block& block, const Tensor& x, int64_t num_queries) {
  const bool merges = num_queries == 0;
  AttentionOutput attention;
  const Tensor y = block.attend(x, {.need_keys = merges, .bias = key_bias(), .num_queries = num_queries}, &attention);
  return block.feed_forward(merges ? merge(y, attention.keys) : y);
}

// x [B, N, C] after the attention and the attention's keys [B, H, N, d] → [B, N − merged, C].
Tensor TokenMerging::merge(const Tensor& x, const Tensor& keys) {
  const int64_t merged = std::min(per_block_, ops::max_mergeable(x.size(1), prefix_));
  if (merged == 0) return x;
  if (!sizes_.defined()) patches_ = x.size(1) - prefix_;
  const ops::MergedTokens result = ops::merge_tokens(x, keys, sizes_, merged, prefix_);
  sizes_ = result.sizes;
  log_sizes_ = result.log_sizes;
  return result.x;
}

// Proportional attention (eq. 1): the log size of each key [B, 1, 1, N]; undefined while every token is one patch.
Tensor TokenMerging::key_bias() const {
  if (!log_sizes_.defined()) return {};
  return log_sizes_.view({log_sizes_.size(0), 1, 1, log_sizes_.size(1)});
}

Tensor TokenMerging::shares() const {
  if (!sizes_.defined()) return {};
  return ops::mul(sizes_, Tensor::full({1}, 1.0 / static_cast<double>(patches_)));
}

}  // namespace vitrail::nn
