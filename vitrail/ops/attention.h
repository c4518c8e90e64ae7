// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "vitrail/tensor/tensor.h"

namespace vitrail::ops {

struct AttentionResult {
  Tensor out;      // [B, T, H·d], heads merged
  Tensor weights;  // [B, H, T, S] after softmax, without a gradient; undefined unless asked for
};

// softmax(scale · q kᵀ + bias) v (Vaswani et al. 2017, eq. 1).  q [B, H, T, d], k and v [B, H, S, d].  bias broadcasts
// to [B, H, T, S] and is added to the scaled scores (−∞ masks a key), or is undefined.  A query whose keys are all
// masked has zero weights and a zero output.  Without need_weights, the weights [B, H, T, S] are never stored: the
// backward pass computes them again.  Differentiable.  Throws Error for shapes that do not match.
AttentionResult attention(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& bias = {},
                          bool need_weights = false);

// The same for a fused projection: qkv [B, N, 3·H·d] → [B, N, H·d], or [B, num_queries, H·d] for the first queries
// only; 0: all.  The backward pass writes the gradients of q, k and v directly into that of qkv.
Tensor self_attention(const Tensor& qkv, int64_t heads, double scale, int64_t num_queries = 0);

// [B, H, N, d] → [B, N, H·d]
Tensor merge_heads(const Tensor& x);

}  // namespace vitrail::ops
