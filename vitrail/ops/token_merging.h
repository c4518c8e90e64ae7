// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct MergedTokens {
  Tensor x;          // [B, N − merged, C]
  Tensor sizes;      // [B, N − merged]: how many patches each token stands for
  Tensor log_sizes;  // [B, N − merged]: what proportional attention adds to the scores of a key
};

// How many tokens can disappear at once: half of those behind the prefix.
int64_t max_mergeable(int64_t tokens, int64_t prefix);

// Token merging (kernels/attention/token_merging.h).  x [B, N, C]; keys [B, H, N, d] of the attention before it, any
// strides with a contiguous last axis; sizes [B, N], or undefined: one each.  `merged` tokens of each sample disappear,
// none of the first `prefix`.  Errors: more merged than (N − prefix) / 2, shapes that do not agree, a gradient wanted
// (there is none: merging is for inference).
MergedTokens merge_tokens(const Tensor& x, const Tensor& keys, const Tensor& sizes, int64_t merged, int64_t prefix);

}  // namespace vitrail::ops
