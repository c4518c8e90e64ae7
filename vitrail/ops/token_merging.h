// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct MergedTokens {
  Tensor x;          // [B, N − merged, C]
  Tensor sizes;      // [B, N − merged]: the number of patches that each token represents
  Tensor log_sizes;  // [B, N − merged]: their logarithms, which proportional attention adds to the scores
};

// The maximum number of tokens that one merge removes: half of those after the prefix.
int64_t max_mergeable(int64_t tokens, int64_t prefix);

// Token merging (Bolya et al. 2023; kernels/attention/token_merging.h): removes `merged` tokens of each sample, none of
// the first `prefix`.  x [B, N, C]; keys [B, H, N, d] of the attention before it; sizes [B, N], or undefined for sizes
// of
// 1.  Not differentiable, because merging is for inference.  Throws Error if merged exceeds max_mergeable(), for shapes
// that do not match, and for inputs that require a gradient.
MergedTokens merge_tokens(const Tensor& x, const Tensor& keys, const Tensor& sizes, int64_t merged, int64_t prefix);

}  // namespace vitrail::ops
